import Dispatch
import InstarSchema
import Synchronization

/// Asks file systems about several paths at once, and does not wait for those that do not answer.
///
/// - Parameter look: Called for each path on a thread of its own; `nil` for no answer.
/// - Returns: The answers that came in time, by path. The other questions go on, and nobody hears of them.
func answersInTime<Answer: Sendable>(
  about paths: some Collection<String>, within limit: Duration,
  _ look: @escaping @Sendable (String) -> Answer?
) -> [String: Answer] {
  let answers = Answers<Answer>()
  let group = DispatchGroup()
  for path in Set(paths) {
    questions.async(group: group) {
      guard let answer = look(path) else { return }
      answers.byPath.withLock { $0[path] = answer }
    }
  }
  _ = group.wait(timeout: .now() + limit.inSeconds)
  return answers.byPath.withLock(\.self)
}

private let questions = DispatchQueue(label: "instard.questions", attributes: .concurrent)

private final class Answers<Answer: Sendable>: Sendable {
  let byPath = Mutex<[String: Answer]>([:])
}
