import Dispatch
import Glibc
import InstarTestSupport
import Synchronization
import Testing

@testable import InstarDaemon

@Suite("The queue of work on watches")
struct WatchQueueTests {
  private final class Record: Sendable {
    let done = Mutex<[String]>([])
    func note(_ name: String) { done.withLock { $0.append(name) } }

    /// Waits until as many pieces of work are done, until `soon()` at most.
    func wait(for count: Int) async throws -> [String] {
      let deadline = soon()
      while done.withLock(\.count) < count, ContinuousClock.now < deadline {
        try await Task.sleep(for: .milliseconds(5))
      }
      return done.withLock(\.self)
    }
  }

  @Test("pieces of work on watches follow each other in the order in which they were added")
  func order() async throws {
    let queue = WatchQueue(patience: .seconds(60))
    let record = Record()
    let names = (0..<50).map { "\($0)" }
    for name in names {
      queue.add(name.hasSuffix("0") ? "/a" : "/b") { _ in
        // Pieces at the same time would end in another order.
        usleep(name.hasSuffix("0") ? 5000 : 0)
        record.note(name)
      }
    }
    #expect(try await record.wait(for: names.count) == names)
  }

  @Test(
    "a piece of work that does not end keeps only those of its own watch waiting",
    .timeLimit(.minutes(1)))
  func hanging() async throws {
    let queue = WatchQueue(patience: .milliseconds(100))
    let record = Record()
    let answers = DispatchSemaphore(value: 0)
    queue.add("/dead") { _ in
      Self.block(until: answers)
      record.note("dead")
    }
    queue.add("/dead") { _ in record.note("dead again") }
    for name in ["a", "b"] { queue.add("/\(name)") { _ in record.note(name) } }
    #expect(Set(try await record.wait(for: 2)) == ["a", "b"])
    queue.add("/c") { _ in record.note("c") }
    #expect(try await record.wait(for: 3).last == "c")
    answers.signal()
    #expect(try await record.wait(for: 5).suffix(2) == ["dead", "dead again"])
  }

  @Test("a piece of work that notes its steps keeps the others waiting, however long it takes")
  func steps() async throws {
    let queue = WatchQueue(patience: .seconds(3))
    let record = Record()
    queue.add("/large") { noteStep in
      // Together longer than the patience.
      for _ in 0..<400 {
        usleep(10_000)
        noteStep()
      }
      record.note("large")
    }
    queue.add("/small") { _ in record.note("small") }
    #expect(try await record.wait(for: 2) == ["large", "small"])
  }

  /// As a file system does that does not answer. Swift has no such call in asynchronous code.
  private static func block(until answers: DispatchSemaphore) { answers.wait() }
}
