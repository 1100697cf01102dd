import InstarSystemd
public import Logging

/// Sends what is logged to the journal, with metadata as fields.
public struct JournalLogHandler: LogHandler {
  public var logLevel: Logger.Level = .info
  public var metadata: Logger.Metadata = [:]
  public var metadataProvider: Logger.MetadataProvider?
  private let identifier: String

  /// - Parameter identifier: becomes `SYSLOG_IDENTIFIER`.
  public init(identifier: String) {
    self.identifier = identifier
  }

  public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  public func log(event: LogEvent) {
    var fields: [(name: String, value: String)] = [
      ("MESSAGE", "\(event.message)"), ("PRIORITY", "\(event.level.priority)"),
      ("SYSLOG_IDENTIFIER", identifier),
    ]
    for (key, value) in metadata.merging(event.metadata ?? [:], uniquingKeysWith: { $1 }) {
      if let name = Self.fieldName(key) { fields.append((name, "\(value)")) }
    }
    // An entry that cannot be sent is lost: a journal that is being restarted must not stop a
    // migration.
    try? Journal.send(fields: fields)
  }

  /// The journal takes capitals, digits and underscores; a field that begins with an underscore is
  /// its own. Other libraries' keys (`sl-signal`) are brought into that form.
  static func fieldName(_ key: String) -> String? {
    let letters = key.utf8.map { byte -> UInt8 in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"): byte - 32
      case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"): byte
      default: UInt8(ascii: "_")
      }
    }
    let name = String(decoding: letters.drop { $0 == UInt8(ascii: "_") }, as: UTF8.self)
    guard let first = name.utf8.first, !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first),
      name.utf8.count <= 64
    else { return nil }
    return name
  }
}
