import Foundation
public import Logging

/// Writes what is logged to standard error, one line each.
///
/// ```text
/// 2026-11-21T10:15:30.123Z notice migrated '/srv/a.store' … INSTAR_EVENT=run-migrated …
/// ```
///
/// Values with blanks, quotes or control characters are quoted as JSON strings, so that a program can
/// split a line into fields. `MESSAGE_ID` is left out, because `INSTAR_EVENT` identifies the event too.
public struct StandardErrorLogHandler: LogHandler {
  public var logLevel: Logger.Level = .info
  public var metadata: Logger.Metadata = [:]
  public var metadataProvider: Logger.MetadataProvider?
  private let identifier: String

  /// - Parameter identifier: shown before the message, where it is not `instard`.
  public init(identifier: String) {
    self.identifier = identifier
  }

  public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  public func log(event: LogEvent) {
    let fields = metadata.merging(event.metadata ?? [:], uniquingKeysWith: { $1 })
    let line = Self.line(
      at: Date(), level: event.level, identifier: identifier, message: "\(event.message)",
      fields: fields.mapValues { "\($0)" })
    // One write(2) a line: lines of several threads do not mix.
    let bytes = Array((line + "\n").utf8)
    var start = 0
    while start < bytes.count {
      let written = bytes[start...].withUnsafeBytes {
        write(STDERR_FILENO, $0.baseAddress, $0.count)
      }
      if written < 0, errno == EINTR { continue }
      guard written > 0 else { return }
      start += written
    }
  }

  static func line(
    at date: Date, level: Logger.Level, identifier: String, message: String,
    fields: [String: String]
  ) -> String {
    var parts = [
      date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true)), level.priorityName,
    ]
    if identifier != "instard" { parts.append("\(identifier):") }
    parts.append(printable(message))
    for (name, value) in fields.sorted(by: { order($0.key) < order($1.key) })
    where name != "MESSAGE_ID" {
      parts.append("\(name)=\(quoted(value))")
    }
    return parts.joined(separator: " ")
  }

  /// The event first, the long text of an error last, the others by name.
  private static func order(_ name: String) -> String {
    switch name {
    case "INSTAR_EVENT": " "
    case "INSTAR_ERROR": "~"
    default: name
    }
  }

  private static func quoted(_ value: String) -> String {
    let isPlain =
      !value.isEmpty
      && value.unicodeScalars.allSatisfy {
        $0 != " " && $0 != "\"" && $0 != "\\" && !isControl($0)
      }
    if isPlain { return value }
    let escaped = value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
    return "\"\(printable(escaped))\""
  }

  /// The text with control characters spelled out: names may hold them, and a terminal would obey.
  private static func printable(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: isControl) else { return text }
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\n": result += "\\n"
      case "\t": result += "\\t"
      case _ where isControl(scalar):
        let digits = String(scalar.value, radix: 16)
        result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }

  private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
    scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value)
  }
}
