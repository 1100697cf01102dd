extension Reader { var rows: Int { 0 } }
