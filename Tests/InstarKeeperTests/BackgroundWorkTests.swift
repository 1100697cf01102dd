import Testing

@testable import InstarKeeper

@Suite("Work in the background")
struct BackgroundWorkTests {
  private struct Failure: Error {}

  @Test(
    "work is done once, by its own thread or by whoever waits first where no thread can be started",
    // No address space is that large, so the kernel refuses the stack.
    arguments: [8 << 20, 1 << 60])
  func result(stackBytes: Int) throws {
    let work = BackgroundWork(stackBytes: stackBytes) { 7 }
    #expect(try work.wait() == 7)
    #expect(try work.wait() == 7)
    let failing = BackgroundWork<Int>(stackBytes: stackBytes) { throw Failure() }
    #expect(throws: Failure.self) { try failing.wait() }
    #expect(failing.failure() is Failure)
  }
}
