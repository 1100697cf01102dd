struct FirstStage {}
