extension Reader { var text: String { "" } }
