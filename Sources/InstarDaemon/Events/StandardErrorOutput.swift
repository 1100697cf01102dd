import Foundation
import InstarSchema
import InstarWire
import Logging

/// Writes what is logged to standard error, one line each.
///
/// ```text
/// 2026-11-21T10:15:30.123Z notice migrated '/srv/a.store' … INSTAR_EVENT=run-migrated …
/// ```
///
/// Values with blanks, quotes or control characters are quoted as JSON strings, so that a program can split a line into
/// fields. `MESSAGE_ID` is left out, because `INSTAR_EVENT` identifies the event too, and
/// `INSTAR_REPORT`, because a line is read by people; 'instarctl history' has the reports.
enum StandardErrorOutput {
  static func write(_ event: LogEvent, identifier: String, fields: [String: String]) {
    let line = line(
      at: Date(), level: event.level, identifier: identifier, message: "\(event.message)",
      fields: fields)
    // One write(2) a line: lines of several threads do not mix. A reader that is gone cannot be told.
    try? FileHandle.standardError.write(contentsOf: Data((line + "\n").utf8))
  }

  static func line(
    at date: Date, level: Logger.Level, identifier: String, message: String,
    fields: [String: String]
  ) -> String {
    var parts = [
      date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true)), level.priorityName,
    ]
    if identifier != "instard" { parts.append("\(identifier):") }
    parts.append(message.escapedForTerminal)
    for (name, value) in fields.sorted(by: { order($0.key) < order($1.key) })
    where name != "MESSAGE_ID" && name != "INSTAR_REPORT" {
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
    let isPlain = value.unicodeScalars.allSatisfy {
      $0 != " " && $0 != "\"" && $0 != "\\" && !$0.isUnsafeOnTerminal
    }
    if isPlain, !value.isEmpty { return value }
    // Not by characters: with an accent behind it, a quote is another character.
    var escaped = String.UnicodeScalarView()
    for scalar in value.unicodeScalars {
      if scalar == "\\" || scalar == "\"" { escaped.append("\\") }
      escaped.append(scalar)
    }
    return "\"\(String(escaped).escapedForTerminal)\""
  }
}
