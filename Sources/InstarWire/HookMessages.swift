public import InstarSchema

/// An event that instard hands to the runner of hooks: one line. The runner replies with one `.ran` for each hook, then
/// `.done`, or with `.failed`.
public struct HookRequest: Sendable, Codable, Hashable {
  /// The name of the event, as in `INSTAR_EVENT`.
  public var event: String
  /// The fields of the event's entry in the journal; hooks get them as a JSON object on standard input.
  public var fields: [String: String]

  public init(event: String, fields: [String: String]) {
    self.event = event
    self.fields = fields
  }
}

/// What the runner of hooks replies to a request.
public enum HookReply: Sendable, Codable, Hashable {
  /// One hook has ended, or could not be started.
  case ran(HookReport)
  /// All hooks of the event have run.
  case done
  /// No hook of the event could be run.
  case failed(InstarError)
}

/// How one hook ran on one event.
public struct HookReport: Sendable, Codable, Hashable {
  /// The path of the hook, absolute.
  public var hook: String
  /// The name of the event.
  public var event: String
  public var durationMicroseconds: Int64
  /// What the hook printed, on standard output and standard error: the first and the last part, in 4 KiB.
  public var output: String
  /// Why the hook failed; left out if it succeeded.
  public var error: InstarError?

  public init(
    hook: String, event: String, durationMicroseconds: Int64, output: String = "",
    error: InstarError? = nil
  ) {
    self.hook = hook
    self.event = event
    self.durationMicroseconds = durationMicroseconds
    self.output = output
    self.error = error
  }
}
