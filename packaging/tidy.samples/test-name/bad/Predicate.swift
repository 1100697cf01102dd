@Test(
  "keeps its log in a recovery too"
)
func recovery() {}
