enum StoreFormat {
  case coredata, plain
  var hasMetadata: Bool { self == .coredata }
}
