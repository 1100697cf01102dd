// A store with format == .plain has no metadata.
struct Question {
  let format: StoreFormat
  var hasVersion: Bool { format.hasMetadata }
}
