@Test("backups are compressed")
func compressed() {}

@Test("of two runs at the same time, the second one finds the store current")
func second() {}

@Test("isolated models compile")
func isolated() {}

@Test("one keeper answers one request after the other")
func requests() {}

@Test("names follow Prometheus' conventions")
func names() {}

@Test("work is done once", .timeLimit(.minutes(1)))
func work() {}

@Test("restore --to writes the backup to a new file")
func copy() {}
