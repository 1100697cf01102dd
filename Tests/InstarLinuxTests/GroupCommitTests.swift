import Foundation
import InstarLinux
import InstarSchema
import Synchronization
import Testing

@Suite("GroupCommit")
struct GroupCommitTests {
  /// The items of each step, in the order in which the steps began.
  private final class Steps: Sendable {
    private let steps = Mutex<[[Int]]>([])

    var all: [[Int]] { steps.withLock { $0 } }

    func add(_ items: [Int]) { steps.withLock { $0.append(items) } }
  }

  /// Calls `body` in threads of their own, each with its number, and waits for all.
  private func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
    DispatchQueue.concurrentPerform(iterations: count, execute: body)
  }

  @Test("every item is committed once, by a step that began after it was given")
  func items() {
    let commits = GroupCommit<Int>()
    let steps = Steps()
    let early = Mutex<[Int]>([])
    onThreads(8) { thread in
      for number in 0..<50 {
        let item = thread * 50 + number
        let begun = steps.all.count
        do throws(InstarError) {
          try commits.perform(item) { items in
            steps.add(items)
            usleep(200)
          }
        } catch {
          Issue.record("item \(item): \(error)")
        }
        let step = steps.all.firstIndex { $0.contains(item) } ?? -1
        if step < begun { early.withLock { $0.append(item) } }
      }
    }
    #expect(steps.all.joined().sorted() == Array(0..<400))
    #expect(early.withLock { $0 }.isEmpty)
  }

  @Test(
    "an item without an error was committed; an error reaches all of its step, and the next one")
  func failures() {
    let commits = GroupCommit<Int>()
    let failed = Mutex<Set<Int>>([])
    let (steps, failedSteps) = (Steps(), Steps())
    onThreads(8) { thread in
      for number in 0..<50 {
        let item = thread * 50 + number
        do throws(InstarError) {
          try commits.perform(item) { (items) throws(InstarError) in
            usleep(200)
            guard items.contains(where: { $0 % 10 == 0 }) else { return steps.add(items) }
            failedSteps.add(items)
            throw InstarError(.stateFolderFailed, "cannot write", cause: "no space is left")
          }
        } catch {
          _ = failed.withLock { $0.insert(item) }
        }
      }
    }
    let committed = steps.all.joined().sorted()
    #expect(committed == Set(0..<400).subtracting(failed.withLock { $0 }).sorted())
    #expect(failed.withLock { $0 }.isSuperset(of: failedSteps.all.joined()))
  }
}
