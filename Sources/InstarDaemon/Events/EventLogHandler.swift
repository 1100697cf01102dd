public import Logging

/// Sends what is logged to the journal, to standard error, or to both; metadata become fields.
public struct EventLogHandler: LogHandler {
  /// Where lines go.
  public enum Output: Sendable {
    case journal
    case standardError
  }

  /// The least urgent level that is passed on.
  public var logLevel: Logger.Level
  /// Fields of every entry.
  public var metadata: Logger.Metadata = [:]
  /// Required by the protocol and not consulted: each event has its own fields.
  public var metadataProvider: Logger.MetadataProvider?
  private let identifier: String
  private let outputs: [Output]

  /// - Parameter identifier: `SYSLOG_IDENTIFIER` in the journal; on standard error it stands before the message, unless
  ///   it is `instard`.
  public init(identifier: String, level: Logger.Level, outputs: [Output]) {
    self.identifier = identifier
    self.outputs = outputs
    logLevel = level
  }

  /// A field of every entry.
  public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  /// Writes an entry to each output.
  public func log(event: LogEvent) {
    let fields = metadata.merging(event.metadata ?? [:]) { $1 }.mapValues { "\($0)" }
    for output in outputs {
      switch output {
      case .journal: JournalOutput.write(event, identifier: identifier, fields: fields)
      case .standardError: StandardErrorOutput.write(event, identifier: identifier, fields: fields)
      }
    }
  }
}
