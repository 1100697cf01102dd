internal import CInstar
internal import Glibc
public import InstarSchema

/// The order to stop soon, given as SIGINT (Ctrl-C), SIGTERM or SIGHUP (the terminal is gone). A SIGHUP that
/// is ignored, as under nohup(1), stays so.
public enum Cancellation {
  /// From now on these signals no longer end the process, but are remembered.
  public static func observe() { instar_observe_cancellation() }

  /// Whether such a signal has arrived since `observe()`.
  public static var isRequested: Bool { instar_is_canceled() }

  /// Makes the descriptor unreadable until the next such signal.
  public static func acknowledge() {
    var count: UInt64 = 0
    // It fails where another call was first.
    _ = read(instar_cancellation_descriptor(), &count, MemoryLayout.size(ofValue: count))
  }

  /// Returns a descriptor that polls readable when such a signal has arrived. It belongs to the process.
  ///
  /// - Throws: `internalError` where the process has no descriptor left.
  public static func descriptor() throws(InstarError) -> Int32 {
    let descriptor = instar_cancellation_descriptor()
    guard descriptor >= 0 else {
      throw InstarError(
        .internalError, "cannot observe signals", cause: String(cString: strerror(errno)))
    }
    return descriptor
  }
}
