import Dispatch
import Foundation
import InstarSchema
import Synchronization

/// Asks file systems about files on other threads, so that one that does not answer stops nobody who asks.
///
/// A thread serves one question after the other, because starting one for each store takes longer than most answers. A
/// thread whose file system does not answer in time is left behind, and ends when it answers.
package final class FileReader: Sendable {
  /// How long to wait for one answer.
  package let patience: Duration
  private let limit: Duration?
  /// One for each question that is asked at the same time.
  private let idle = Mutex<[ReadingThread]>([])

  /// - Parameters:
  ///   - patience: How long to wait for one answer.
  ///   - limit: How long to wait for all answers of one call; `nil` without a limit.
  package init(patience: Duration, limit: Duration? = nil) {
    self.patience = patience
    self.limit = limit
  }

  deinit { for thread in idle.withLock(\.self) { thread.end() } }

  /// Asks about some paths, one after the other.
  ///
  /// - Parameters:
  ///   - patience: How long to wait for one answer; by default the reader's own.
  ///   - look: Called on another thread.
  /// - Returns: The answers about all paths, or about those before the first one that is not answered in time.
  package func answers<Answer: Sendable>(
    about paths: [String], patience: Duration? = nil, _ look: @escaping @Sendable (String) -> Answer
  ) -> [Answer] {
    let thread = idle.withLock { $0.popLast() } ?? ReadingThread()
    let found = FoundAnswers<Answer>()
    thread.begin {
      for path in paths { guard found.add(look(path)) else { return } }
    }
    let end = limit.map { ContinuousClock.now + $0 }
    var count = 0
    while !thread.hasFinished(within: patience ?? self.patience) {
      guard found.count > count, end.map({ .now < $0 }) != false else {
        thread.end()
        return found.close()
      }
      count = found.count
    }
    idle.withLock { $0.append(thread) }
    return found.close()
  }
}

private final class FoundAnswers<Answer: Sendable>: Sendable {
  private let state = Mutex<(answers: [Answer], isClosed: Bool)>(([], false))

  var count: Int { state.withLock { $0.answers.count } }

  /// - Returns: Whether another answer is wanted.
  func add(_ answer: Answer) -> Bool {
    state.withLock { state in
      if !state.isClosed { state.answers.append(answer) }
      return !state.isClosed
    }
  }

  func close() -> [Answer] {
    state.withLock { state in
      state.isClosed = true
      return state.answers
    }
  }
}

/// A thread that does one piece of work after the other, for one user at a time.
private final class ReadingThread: Sendable {
  private typealias Work = @Sendable () -> Void

  private let work = Mutex<Work?>(nil)
  private let wanted = DispatchSemaphore(value: 0)
  private let finished = DispatchSemaphore(value: 0)

  init() {
    let thread = Thread { [self] in
      while true {
        wanted.wait()
        guard let next = work.withLock({ $0.take() }) else { return }
        next()
        finished.signal()
      }
    }
    thread.name = "instar-reader"
    thread.stackSize = 256 << 10
    thread.start()
  }

  func begin(_ next: @escaping @Sendable () -> Void) {
    work.withLock { $0 = next }
    wanted.signal()
  }

  /// Whether the work that was begun has ended; waits for that.
  func hasFinished(within limit: Duration) -> Bool {
    finished.wait(timeout: .now() + limit.inSeconds) == .success
  }

  /// Ends the thread after the work that it has begun.
  func end() {
    work.withLock { $0 = nil }
    wanted.signal()
  }
}
