import InstarDaemon
import InstarSystemd
import Logging

/// Where events are logged, from the flags and from what the system has.
struct LogOutputs {
  private let usesJournal: Bool
  private let usesStandardError: Bool

  /// - Throws: when `--journal` is set and there is no journal.
  init(foreground: Bool, journal: Bool) throws(MissingJournal) {
    if journal, !Journal.isAvailable { throw MissingJournal() }
    // A service's standard error is in the journal already, but without fields.
    usesStandardError =
      foreground ? !Journal.receivesStandardError : !journal && !Journal.isAvailable
    usesJournal = journal || !usesStandardError
  }

  func handler(_ identifier: String, level: Logger.Level) -> any LogHandler {
    var handlers: [any LogHandler] = []
    if usesJournal { handlers.append(JournalLogHandler(identifier: identifier)) }
    if usesStandardError { handlers.append(StandardErrorLogHandler(identifier: identifier)) }
    var handler = MultiplexLogHandler(handlers)
    handler.logLevel = level
    return handler
  }
}

/// `--journal` was set, but there is no journal.
struct MissingJournal: Error, CustomStringConvertible {
  var description: String {
    "cannot log to the journal: /run/systemd/journal/socket does not exist; run without --journal"
  }
}
