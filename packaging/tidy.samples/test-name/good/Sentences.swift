@Test("backups are compressed")
func compressed() {}

@Test("of two runs at the same time, the second one finds the store current")
func second() {}

@Test("isolated models compile")
func isolated() {}
