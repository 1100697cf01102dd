import Dispatch
import Foundation
import InstarSchema
import Synchronization

/// Asks file systems about files on other threads, so that one that does not answer stops nobody who asks.
///
/// A thread serves one question after the other, because starting one for each store takes longer than most answers. A
/// thread whose file system does not answer in time is left behind, and ends when it answers. Until then nothing more
/// is asked there: each question would take the whole patience, and leave another thread behind.
///
/// Where no thread can be started, the thread of whoever asks is used: that a machine has no thread left does not mean
/// that its file systems are silent.
package final class FileReader: Sendable {
  /// How long to wait for one answer.
  package let patience: Duration
  private let limit: Duration?
  private let stackBytes: Int
  /// One for each question that is asked at the same time.
  private let idle = Mutex<[ReadingThread]>([])
  /// Threads that were left behind, each with what does not answer.
  private let left = Mutex<[(thread: ReadingThread, place: SilentPlace)]>([])

  /// - Parameters:
  ///   - patience: How long to wait for one answer.
  ///   - limit: How long to wait for all answers of one call; `nil` without a limit.
  package convenience init(patience: Duration, limit: Duration? = nil) {
    self.init(patience: patience, limit: limit, stackBytes: 256 << 10)
  }

  /// - Parameter stackBytes: The size of the stack of each thread.
  init(patience: Duration, limit: Duration? = nil, stackBytes: Int) {
    self.patience = patience
    self.limit = limit
    self.stackBytes = stackBytes
  }

  deinit { for thread in idle.withLock(\.self) { thread.end() } }

  /// Asks about some paths, one after the other.
  ///
  /// - Parameters:
  ///   - patience: How long to wait for one answer; by default the reader's own.
  ///   - look: Called on another thread, if one can be started.
  /// - Returns: The answers about all paths, or about those before the first one that is not answered in time, or that
  ///   is silent already.
  package func answers<Answer: Sendable>(
    about paths: [String], patience: Duration? = nil, _ look: @escaping @Sendable (String) -> Answer
  ) -> [Answer] {
    let isSilent = silence()
    let asked = Array(paths.prefix { !isSilent($0) })
    guard !asked.isEmpty else { return [] }
    guard let thread = freeThread() else { return asked.map(look) }
    let (answers, isLeft) = ask(thread, asked, patience ?? self.patience, look)
    if isLeft, answers.count < asked.count {
      let place = place(of: asked[answers.count])
      left.withLock { $0.append((thread, place)) }
    }
    return answers
  }

  /// Returns whether a path is where an earlier question has no answer yet. It asks no file system.
  package func silence() -> (_ path: String) -> Bool {
    let places = left.withLock { left in
      left.removeAll { $0.thread.hasFinished(within: .zero) }
      return Set(left.map(\.place))
    }
    guard !places.isEmpty else { return { _ in false } }
    let mounts = MountWatch.mounts()
    return { path in
      let mount = mounts.mount(of: path)
      return places.contains { place in
        switch place {
        case .mount(let silent): mount == silent
        case .path(let silent): path == silent || path.isBelow(silent)
        }
      }
    }
  }

  /// What does not answer, as far as paths tell.
  private enum SilentPlace: Hashable {
    /// All of a file system. Once another one is mounted there, that is asked.
    case mount(MountWatch.Mount)
    /// A path, and all below it: a symbolic link that points to the file system.
    case path(String)
  }

  /// Finds out what a question without an answer says about other paths.
  private func place(of path: String) -> SilentPlace {
    guard let mount = MountWatch.mounts().mount(of: path), let thread = freeThread() else {
      return .path(path)
    }
    // The path of a mount has no symbolic links. Below it one may point to another file system: by such a link a user
    // could silence the stores of others.
    var below: [String] = []
    var next = mount.path == "/" ? "" : mount.path
    for name in path.dropFirst(next.count).split(separator: "/") {
      next += "/" + name
      below.append(next)
    }
    let (areLinks, _) = ask(thread, below, Self.moment) { path in
      var start = CChar()
      return readlink(path, &start, 1) >= 0
    }
    // What is below that link does not answer.
    if let link = areLinks.lastIndex(of: true) { return .path(below[link]) }
    return mount.path != "/" && isSilent(mount) ? .mount(mount) : .path(path)
  }

  /// Returns whether a mount itself gives no answer. The question without one may have met something else: a symbolic
  /// link that is no longer there, a mount that was taken away since, or a slow database of users.
  private func isSilent(_ mount: MountWatch.Mount) -> Bool {
    guard let thread = freeThread() else { return false }
    let (answers, _) = ask(thread, [mount.path], Self.moment) { path in
      var status = statvfs()
      // An error is an answer too.
      return statvfs(path, &status)
    }
    return answers.isEmpty
  }

  /// A file system that answers does so within this time.
  private static let moment = Duration.milliseconds(250)

  /// - Returns: `nil` where none can be started.
  private func freeThread() -> ReadingThread? {
    idle.withLock { $0.popLast() } ?? ReadingThread(stackBytes: stackBytes)
  }

  /// - Returns: The answers, and whether the thread was left behind with the question that has none.
  private func ask<Answer: Sendable>(
    _ thread: ReadingThread, _ paths: [String], _ patience: Duration,
    _ look: @escaping @Sendable (String) -> Answer
  ) -> (answers: [Answer], isLeft: Bool) {
    let found = FoundAnswers<Answer>()
    thread.begin {
      for path in paths { guard found.add(look(path)) else { return } }
    }
    let end = limit.map { ContinuousClock.now + $0 }
    var count = 0
    while !thread.hasFinished(within: patience) {
      guard found.count > count, end.map({ .now < $0 }) != false else {
        thread.end()
        return (found.close(), true)
      }
      count = found.count
    }
    idle.withLock { $0.append(thread) }
    return (found.close(), false)
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

  /// - Returns: `nil` where the thread cannot be started: the kernel, or a limit of the service, allows no more.
  init?(stackBytes: Int) {
    let reason = startThread(named: "instar-reader", stackBytes: stackBytes) { [self] in serve() }
    guard reason == 0 else { return nil }
  }

  private func serve() {
    // Also one that was ended before it began its work has finished.
    defer { finished.signal() }
    while true {
      wanted.wait()
      guard let next = work.withLock({ $0.take() }) else { return }
      next()
      finished.signal()
    }
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
