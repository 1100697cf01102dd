@Test(
  "of a schema that is a folder is refused",
  arguments: [1, 2])
func folders(number: Int) {}
