import Foundation
import InstarLinux
import InstarTestSupport
import Synchronization
import Testing

/// Work on a thread of its own: tests run on as many threads as there are cores, and blocking calls
/// would hold up all of them.
final class OtherThread<Value: Sendable>: Sendable {
  private let result = Mutex<Result<Value, any Error>?>(nil)
  private let done = DispatchSemaphore(value: 0)

  init(_ body: @escaping @Sendable () throws -> Value) {
    Thread.detachNewThread { [self] in
      let outcome = Result { try body() }
      result.withLock { $0 = outcome }
      done.signal()
    }
  }

  /// Waits for the result; once.
  func value() throws -> Value {
    guard done.wait(timeout: .now() + 60) == .success, let result = result.withLock({ $0 }) else {
      throw CancellationError()
    }
    return try result.get()
  }
}

extension ChildProcess {
  /// Waits for the first line of its output.
  func waitForOutput() throws {
    let limit = soon()
    while !capturedOutput.contains("\n") {
      guard ContinuousClock.now < limit else { throw CancellationError() }
      usleep(1000)
    }
  }
}

/// The process has ended, or ends soon: a signal takes its time. A zombie that its new parent has
/// not reaped yet has ended.
func isGone(_ pid: pid_t) -> Bool {
  let limit = soon()
  while ContinuousClock.now < limit {
    guard let status = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8) else {
      return true
    }
    if status.contains(") Z ") { return true }
    usleep(1000)
  }
  return false
}

/// Compiles C, with the system's compiler or else the one of the Swift toolchain.
func compileC(_ sources: [String], to output: String, _ flags: [String]) throws {
  let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin").split(separator: ":")
  let candidates = ["cc", "clang"].flatMap { name in folders.map { folder in "\(folder)/\(name)" } }
  let compiler = candidates.first { access($0, X_OK) == 0 }
  let child = try ChildProcess.start(
    executable: try #require(compiler, "there is no C compiler in PATH"),
    arguments: ["-O1", "-o", output] + sources + flags, output: .captured(limitBytes: 20_000))
  let end = try child.wait(deadline: soon())
  #expect(end == .exited(0), "\(child.capturedOutput)")
}

/// The folder of the package.
let packageFolder = URL(fileURLWithPath: #filePath)
  .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path
