import Foundation
public import InstarSchema

/// Runs blocking work on its own thread. The cooperative pool has one thread per core, so a few blocked runs would stop
/// everything else.
public func onOwnThread<Value: Sendable>(
  _ work: @escaping @Sendable () throws(InstarError) -> Value
) async throws(InstarError) -> Value {
  let result: Result<Value, InstarError> = await withCheckedContinuation { continuation in
    let thread = Thread {
      do throws(InstarError) {
        continuation.resume(returning: .success(try work()))
      } catch {
        continuation.resume(returning: .failure(error))
      }
    }
    thread.name = "instar-blocking"
    thread.stackSize = 1 << 20
    thread.start()
  }
  return try result.get()
}
