@Test("one that others can write is refused")
func writable() {}
