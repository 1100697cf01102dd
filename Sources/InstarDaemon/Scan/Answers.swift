import Dispatch
import Foundation
import InstarLinux
import InstarSchema
import Synchronization

/// Asks file systems about several paths at once, and does not wait for those that do not answer. `FileReader` asks
/// about one path after the other.
///
/// - Parameter look: Called for each path on a thread of its own; `nil` for no answer.
/// - Returns: The answers that came within a second, by path. The other questions go on, and nobody hears of them.
func answersInTime<Answer: Sendable>(
  about paths: some Collection<String>, _ look: @escaping @Sendable (String) -> Answer?
) -> [String: Answer] {
  let answers = Answers<Answer>()
  let group = DispatchGroup()
  for path in Set(paths) {
    group.enter()
    // Dispatch has few threads, and one that does not answer would keep one of them.
    let thread = Thread {
      defer { group.leave() }
      guard let answer = look(path) else { return }
      answers.byPath.withLock { $0[path] = answer }
    }
    thread.stackSize = 256 << 10
    thread.start()
  }
  _ = group.wait(timeout: .now() + .seconds(1))
  return answers.byPath.withLock(\.self)
}

private final class Answers<Answer: Sendable>: Sendable {
  let byPath = Mutex<[String: Answer]>([:])
}

extension FileReader {
  /// One for the daemon's loop, which has other work.
  static var ofDaemon: FileReader { FileReader(patience: .seconds(1), limit: .seconds(3)) }
}
