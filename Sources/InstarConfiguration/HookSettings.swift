/// Which programs run on events, and how: `hooks` in `instard.yml`.
public struct HookSettings: Sendable, Hashable {
  /// For each event there may be a folder `EVENT.d` in it, with the hooks of the event.
  public var folder = "/etc/instar/hooks.d"
  /// The name of the user that hooks run as, if the daemon can become other users; else they run as its own.
  public var user = "instar-hook"
  /// A hook that takes longer is ended.
  public var timeLimit = Duration.seconds(30)

  public init() {}
}
