import Dispatch
import InstarSchema
import Synchronization

/// Asks file systems about several paths at once, and does not wait for those that do not answer.
enum BoundedLookup {
  private static let queue = DispatchQueue(label: "instard.lookup", attributes: .concurrent)

  /// Returns the answers that came in time, by path. The other lookups go on, and nobody hears of them.
  ///
  /// - Parameter look: Called for each path on a thread of its own; `nil` for no answer.
  static func answers<Answer: Sendable>(
    about paths: some Collection<String>, within limit: Duration,
    _ look: @escaping @Sendable (String) -> Answer?
  ) -> [String: Answer] {
    let found = Found<Answer>()
    let group = DispatchGroup()
    for path in Set(paths) {
      queue.async(group: group) {
        guard let answer = look(path) else { return }
        found.answers.withLock { $0[path] = answer }
      }
    }
    _ = group.wait(timeout: .now() + limit.inSeconds)
    return found.answers.withLock(\.self)
  }

  private final class Found<Answer: Sendable>: Sendable {
    let answers = Mutex<[String: Answer]>([:])
  }
}
