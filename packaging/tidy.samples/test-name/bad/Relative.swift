@Test("that hangs is ended at its time limit", .timeLimit(.minutes(1)))
func hangs() {}
