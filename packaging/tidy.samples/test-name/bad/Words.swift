@Test("dropped rows")
func dropped() {}
