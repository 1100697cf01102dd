import CInstar
import Foundation
public import InstarSchema

/// Runs blocking work on its own thread. The cooperative pool has one thread per core, so a few blocked runs would stop
/// everything else.
///
/// - Parameter stackBytes: The size of the thread's stack.
/// - Throws: `limitReached` if the thread cannot be started; the error of the work.
public func onOwnThread<Value: Sendable>(
  stackBytes: Int = 1 << 20, _ work: @escaping @Sendable () throws(InstarError) -> Value
) async throws(InstarError) -> Value {
  let result: Result<Value, InstarError> = await withCheckedContinuation { continuation in
    let reason = startThread(named: "instar-blocking", stackBytes: stackBytes) {
      do throws(InstarError) {
        continuation.resume(returning: .success(try work()))
      } catch {
        continuation.resume(returning: .failure(error))
      }
    }
    guard reason != 0 else { return }
    continuation.resume(returning: .failure(.systemFailure("cannot start a thread", reason)))
  }
  return try result.get()
}

/// Starts a thread. Foundation's `Thread` does not tell whether it was started.
///
/// - Parameter name: At most 15 bytes.
/// - Returns: 0; or an `errno` if the kernel, or a limit of the process or its service, allows no more threads. Then
///   `body` is not called.
package func startThread(
  named name: String, stackBytes: Int, _ body: @escaping @Sendable () -> Void
) -> Int32 {
  var attributes = pthread_attr_t()
  pthread_attr_init(&attributes)
  defer { pthread_attr_destroy(&attributes) }
  pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
  pthread_attr_setstacksize(&attributes, stackBytes)
  let work = Unmanaged.passRetained(OwnThread(name: name, body: body))
  var thread = pthread_t()
  let reason = pthread_create(
    &thread, &attributes,
    { context in
      guard let context else { return nil }
      let work = Unmanaged<OwnThread>.fromOpaque(context).takeRetainedValue()
      instar_name_thread(work.name)
      work.body()
      return nil
    }, work.toOpaque())
  if reason != 0 { work.release() }
  return reason
}

/// What a thread gets when it starts.
private final class OwnThread: Sendable {
  let name: String
  let body: @Sendable () -> Void

  init(name: String, body: @escaping @Sendable () -> Void) {
    self.name = name
    self.body = body
  }
}
