import InstarSystemd
import Logging

/// The journal as an output of the log.
enum JournalOutput {
  static func write(_ event: LogEvent, identifier: String, fields: [String: String]) {
    let priority = "\(event.level.priority)"
    // An entry that cannot be sent is lost: a journal that is being restarted must not stop a migration.
    try? Journal.send(
      fields: [
        ("MESSAGE", "\(event.message)"), ("PRIORITY", priority), ("SYSLOG_IDENTIFIER", identifier),
      ] + fields.compactMap { key, value in fieldName(key).map { ($0, value) } })
  }

  /// The journal takes capitals, digits and underscores; a field that begins with an underscore is its own. Other
  /// libraries' keys (`sl-signal`) are brought into that form. `nil` if that is not possible.
  static func fieldName(_ key: String) -> String? {
    let letters = key.utf8.map { byte -> UInt8 in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"): byte - 32
      case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"): byte
      default: UInt8(ascii: "_")
      }
    }
    let name = String(decoding: letters.drop { $0 == UInt8(ascii: "_") }, as: UTF8.self)
    return Journal.isFieldName(name) ? name : nil
  }
}
