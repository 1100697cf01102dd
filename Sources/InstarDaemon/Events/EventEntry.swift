import Foundation
import InstarWire
import Logging

/// One entry of the journal: one line for people, fields for programs.
struct EventEntry: Sendable, Hashable {
  /// What happened; its identifier is the journal's `MESSAGE_ID`.
  var kind: EventKind
  /// How urgent the entry is, as the journal's `PRIORITY`.
  var level: Logger.Level
  /// Without a newline.
  var message: String
  /// The `INSTAR_` fields that apply, without `INSTAR_EVENT`.
  var fields: [String: String]

  /// All fields that identify the event and say more about it.
  var namedFields: [String: String] {
    fields.merging(["INSTAR_EVENT": kind.rawValue, "MESSAGE_ID": kind.messageID]) { $1 }
  }

  /// The entry as `journalctl --output=json` shows it, without what the journal adds; with the time, in microseconds
  /// since 1970.
  var journalFields: [String: String] {
    let microseconds = Int64(Date().timeIntervalSince1970 * 1_000_000)
    return namedFields.merging([
      "MESSAGE": message, "PRIORITY": "\(level.priority)", "SYSLOG_IDENTIFIER": "instard",
      "_SOURCE_REALTIME_TIMESTAMP": "\(microseconds)",
    ]) { $1 }
  }
}
