import CInstar
import Foundation
import Glibc
public import InstarSchema

/// The processes that outlive their parents, in a program that has no other child while it asks for them.
///
/// A process that a child started can leave the child's process group (setsid(2)) and outlive it. The kernel gives it
/// to the nearest ancestor that adopts orphans (prctl(2), PR_SET_CHILD_SUBREAPER).
public enum OrphanedProcess {
  /// Makes this process the parent of its orphaned descendants, for as long as it lives.
  ///
  /// - Throws: `internalError` where the kernel refuses.
  public static func adoptAll() throws(InstarError) {
    guard instar_adopt_orphans() == 0 else {
      throw .systemFailure("cannot adopt orphaned processes", errno)
    }
  }

  /// Kills every child of this process, and the children that they leave to it, and reaps them.
  ///
  /// - Returns: Whether all are gone. Some may be left at the deadline: one that waits for a disk cannot be killed.
  public static func killAll(deadline: ContinuousClock.Instant) -> Bool {
    while true {
      for child in children() { kill(child, SIGKILL) }
      var reaped: pid_t
      repeat { reaped = waitpid(-1, nil, WNOHANG) } while reaped > 0
      // A child that is reaped may have left others: only ECHILD says that none is left.
      if reaped < 0, errno == ECHILD { return true }
      guard ContinuousClock.now < deadline else { return false }
      usleep(1000)
    }
  }

  /// Nobody else reaps a child, so none of these numbers is another process by now.
  private static func children() -> [pid_t] {
    let threads = (try? FolderNames.all(in: "/proc/self/task")) ?? []
    return threads.flatMap { thread -> [pid_t] in
      let list = try? String(contentsOfFile: "/proc/self/task/\(thread)/children", encoding: .utf8)
      return (list ?? "").split(separator: " ").compactMap { pid_t($0) }
    }
  }
}
