func tables(_ format: StoreFormat) -> [String] {
  switch format {
  case .coredata: ["Z_METADATA"]
  default: []
  }
}
