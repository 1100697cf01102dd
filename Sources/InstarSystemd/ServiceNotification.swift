import CSystemd
import InstarSchema

/// A notification to the manager that started this service (sd_notify(3)). Nothing is sent without `NOTIFY_SOCKET` in
/// the environment.
public enum ServiceNotification: Sendable, Hashable {
  /// Started, and ready for work.
  case ready
  /// Reading its configuration again; ended by `.ready`.
  case reloading
  case stopping
  /// Alive: at least once every `watchdogInterval`.
  case watchdog
  /// Starting or stopping takes longer: the manager waits that long from now, beyond its time limit.
  case extendTimeout(Duration)
  /// One line for `systemctl status`.
  case status(String)

  /// Sends all of them in one message. Throws nothing, because work continues without a manager.
  public static func send(_ notifications: ServiceNotification...) {
    guard !notifications.isEmpty else { return }
    _ = sd_notify(0, notifications.map(\.assignment).joined(separator: "\n"))
  }

  /// How often the manager expects `.watchdog`; `nil` where it does not.
  public static var watchdogInterval: Duration? {
    var microseconds: UInt64 = 0
    guard sd_watchdog_enabled(0, &microseconds) > 0 else { return nil }
    return .microseconds(Int64(clamping: microseconds))
  }

  private var assignment: String {
    switch self {
    case .ready: "READY=1"
    case .reloading: "RELOADING=1\nMONOTONIC_USEC=\(monotonicMicroseconds())"
    case .stopping: "STOPPING=1"
    case .watchdog: "WATCHDOG=1"
    case .extendTimeout(let duration):
      "EXTEND_TIMEOUT_USEC=\(duration.inMicroseconds)"
    case .status(let line):
      "STATUS=" + line.split(whereSeparator: \.isNewline).joined(separator: " ")
    }
  }
}
