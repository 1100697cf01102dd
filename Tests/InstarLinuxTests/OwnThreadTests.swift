import Glibc
import InstarSchema
import InstarTestSupport
import Testing

@testable import InstarLinux

@Suite("Threads")
struct OwnThreadTests {
  /// No address space is that large, so the kernel refuses the stack.
  private static let tooManyBytes = 1 << 60

  @Test("work whose thread cannot be started is not called, and fails with what to do")
  func noThread() async throws {
    let error = await #expect(throws: InstarError.self) {
      try await onOwnThread(stackBytes: Self.tooManyBytes) { Issue.record("called") }
    }
    #expect(error?.code == .limitReached && error?.next != nil)
  }

  @Test("a reached limit is an error of its own, with the limit to raise, and not a defect")
  func limits() {
    for (reason, setting) in [
      (EMFILE, "ulimit -n"), (ENFILE, "fs.file-max"), (EAGAIN, "ulimit -u"),
    ] {
      let error = InstarError.systemFailure("cannot start", reason)
      #expect(error.code == .limitReached && error.next?.contains(setting) == true, "\(error)")
    }
    #expect(InstarError.systemFailure("cannot start", EINVAL).code == .internalError)
    let missing = InstarError.systemFailure("cannot start", EMFILE, code: .stateFolderFailed)
    #expect(missing.code == .stateFolderFailed && missing.next != nil)
  }
}
