@Test("are compressed, and listed with their sizes")
func compressed() {}
