import Foundation
import Synchronization

/// One request, and its answer as it arrives.
///
/// The client's thread adds bytes and the end. One task takes them: it waits in `waiter` while there is nothing to
/// take. All of that is in `state`, and nobody calls another object while holding its lock.
///
/// **States.** A request runs until it has an end, which is set once: by the thread when the transfer is over or the
/// client is closed, or by the task when it wants no more. Bytes that arrived before the end can still be taken after
/// it, unless the task itself ended the request.
final class HTTPRequest: Sendable {
  private struct State {
    var status = 0
    var bytes = Data()
    var isPaused = false
    var end: Result<Void, HTTPFailure>?
    var waiter: CheckedContinuation<Void, Never>?

    var hasNews: Bool { !bytes.isEmpty || end != nil }
  }

  /// What becomes of bytes that arrived.
  enum Reception {
    case taken
    /// The task is slow. libcurl keeps the bytes, and reads no more until the request is resumed.
    case paused
    case refused
  }

  /// The server has to wait if this many bytes were not taken.
  private static let pauseBytes = 1 << 20

  let url: String
  let body: Data
  /// How long the whole answer may take.
  let limit: Duration
  private let thread: HTTPThread
  private let state = Mutex(State())

  init(_ url: String, body: Data, limit: Duration, thread: HTTPThread) {
    self.url = url
    self.body = body
    self.limit = limit
    self.thread = thread
  }

  // MARK: For the task

  /// Returns the HTTP status of the answer, once its body has begun or ended.
  func status() async throws(HTTPFailure) -> Int {
    await wait()
    return try state.withLock { state throws(HTTPFailure) in
      if state.bytes.isEmpty, case .failure(let failure) = state.end { throw failure }
      return state.status
    }
  }

  /// Returns the bytes that have arrived since the last call, and waits for at least one; `nil` at the end.
  func next() async throws(HTTPFailure) -> Data? {
    await wait()
    let (bytes, wasPaused) = try state.withLock { state throws(HTTPFailure) -> (Data?, Bool) in
      guard state.bytes.isEmpty else {
        defer {
          state.bytes = Data()
          state.isPaused = false
        }
        return (state.bytes, state.isPaused)
      }
      try state.end?.get()
      return (nil, false)
    }
    if wasPaused { thread.resume(self) }
    return bytes
  }

  /// Ends the request, if it has not ended.
  func cancel() {
    if finish(.failure(.canceled)) { thread.remove(self) }
  }

  /// Returns when there are bytes or the end. A cancelled task ends the request.
  private func wait() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let hasNews = state.withLock { state in
          if !state.hasNews { state.waiter = continuation }
          return state.hasNews
        }
        if hasNews { continuation.resume() }
      }
    } onCancel: {
      cancel()
    }
  }

  // MARK: For the thread

  var hasEnded: Bool { state.withLock { $0.end != nil } }

  func receive(_ bytes: UnsafeRawBufferPointer, status: Int) -> Reception {
    let (reception, waiter) = state.withLock {
      state -> (Reception, CheckedContinuation<Void, Never>?) in
      guard state.end == nil else { return (.refused, nil) }
      guard state.bytes.count < Self.pauseBytes else {
        state.isPaused = true
        return (.paused, nil)
      }
      state.status = status
      state.bytes.append(contentsOf: bytes)
      defer { state.waiter = nil }
      return (.taken, state.waiter)
    }
    waiter?.resume()
    return reception
  }

  /// Sets the end, and the status of an answer without a body.
  ///
  /// - Returns: `false` if the request had ended before.
  @discardableResult
  func finish(_ end: Result<Void, HTTPFailure>, status: Int? = nil) -> Bool {
    let (isFirst, waiter) = state.withLock { state -> (Bool, CheckedContinuation<Void, Never>?) in
      guard state.end == nil else { return (false, nil) }
      state.end = end
      if let status { state.status = status }
      if case .failure(.canceled) = end { state.bytes = Data() }
      defer { state.waiter = nil }
      return (true, state.waiter)
    }
    waiter?.resume()
    return isFirst
  }
}
