import Glibc
import InstarSchema

extension InstarError {
  /// The failure of a system call: `number` is its `errno`, taken before anything else could change
  /// it.
  static func systemFailure(
    _ what: String, _ number: Int32, code: Code = .internalError, next: String? = nil
  ) -> InstarError {
    InstarError(code, what, cause: String(cString: strerror(number)), next: next)
  }
}

/// How long poll(2) may sleep until the deadline, in milliseconds: rounded up, so that nobody spins
/// through the last one. `-1`, for ever, without a deadline; 0 once it has passed.
func pollTimeoutMilliseconds(until deadline: ContinuousClock.Instant?) -> Int32 {
  guard let deadline else { return -1 }
  let left = deadline - ContinuousClock.now
  guard left > .zero else { return 0 }
  // A day at most: a longer wait wakes up once a day and sleeps again.
  return Int32((min(left, .seconds(86_400)) / .milliseconds(1)).rounded(.up))
}
