@Test("so does a store whose folder has a watch of its own")
func otherWatch() {}
