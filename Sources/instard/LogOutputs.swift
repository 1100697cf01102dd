import InstarDaemon
import InstarSystemd
import Logging

/// Where the daemon's reports go, as its flags and its surroundings say.
struct LogOutputs {
  private let usesJournal: Bool
  private let usesStandardError: Bool

  /// - Throws: when a journal is asked for and there is none.
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

/// A journal was asked for and there is none.
struct MissingJournal: Error, CustomStringConvertible {
  var description: String {
    "--journal: there is no journal here (/run/systemd/journal/socket); leave the flag out"
  }
}
