@Test("it feeds the watchdog as often as it is told to")
func watchdog() {}
