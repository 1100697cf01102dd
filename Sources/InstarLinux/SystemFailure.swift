import Foundation
import Glibc
package import InstarSchema

extension InstarError {
  /// The error of a failed system call. `number` is its `errno`, read before any other call.
  ///
  /// - Parameter code: `limitReached` replaces `internalError` where a limit is reached.
  package static func systemFailure(
    _ what: String, _ number: Int32, code: Code = .internalError, next: String? = nil
  ) -> InstarError {
    let limit = adviceOnLimit(number)
    return InstarError(
      code == .internalError && limit != nil ? .limitReached : code, what,
      cause: String(cString: strerror(number)), next: next ?? limit)
  }

  /// Returns what to do where a limit of the process or of the machine is reached; `nil` for other errors.
  private static func adviceOnLimit(_ number: Int32) -> String? {
    switch number {
    case EMFILE:
      "raise the limit of open files of this process (ulimit -n, LimitNOFILE= of a service), or "
        + "name fewer stores at once"
    case ENFILE: "raise the limit of open files of this machine: sysctl fs.file-max"
    case EAGAIN:
      "raise the limit of processes and threads (ulimit -u, TasksMax= of a service), or end other "
        + "processes of this user"
    case ENOMEM: "free some memory, or raise the limit of this process (ulimit -v)"
    default: nil
    }
  }

  /// Returns what to do about a file that cannot be written in a folder.
  ///
  /// - Parameter reason: The `errno`.
  package static func adviceOnWriting(in folder: String, _ reason: Int32?) -> String {
    let folder = CommandText.quoted(folder)
    return switch reason {
    case ENOSPC, EDQUOT: "free some space, or raise the quota; run: df -h \(folder)"
    case EROFS:
      "choose another folder, or remount this one for writing; run: findmnt --target \(folder)"
    default: "check owner and mode of the folder; run: ls -ld \(folder)"
    }
  }

  /// Returns the `errno` of an error of Foundation; `nil` for others.
  package static func number(of error: any Error) -> Int32? {
    ((error as? CocoaError)?.underlying as? POSIXError)?.code.rawValue
  }

  /// Returns why a file could not be read or written, in the system's words. Foundation's own say less: "The operation
  /// could not be completed."
  package static func reason(of error: any Error) -> String {
    if let known = error as? InstarError { return known.cause }
    guard let posix = (error as? CocoaError)?.underlying as? POSIXError else {
      return error.localizedDescription
    }
    return String(cString: strerror(posix.code.rawValue))
  }
}

/// The timeout of poll(2) for a deadline, in milliseconds: rounded up, so that the last one is not spent spinning. -1
/// (no limit) without a deadline; 0 once it has passed.
func pollTimeoutMilliseconds(until deadline: ContinuousClock.Instant?) -> Int32 {
  guard let deadline else { return -1 }
  let left = deadline - ContinuousClock.now
  guard left > .zero else { return 0 }
  // A day at most: a longer wait wakes up once a day and sleeps again.
  return Int32((min(left, .seconds(86_400)) / .milliseconds(1)).rounded(.up))
}
