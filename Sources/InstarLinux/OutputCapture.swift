import CInstar
import Foundation
import Glibc
import InstarSchema
import Synchronization

/// The standard output and error of a child, read by its own thread.
///
/// The thread ends when every writer has closed the pipe, or when the child has ended and its output is read: another
/// process that inherited the pipe cannot delay it.
final class OutputCapture: Sendable {
  private struct State {
    /// The first bytes, up to half of the limit.
    var head: [UInt8] = []
    /// The last ones; longer than the other half of the limit for a while only.
    var tail: [UInt8] = []
    var totalBytes = 0
  }

  private let limitBytes: Int
  private let state = Mutex(State())
  private let complete = DispatchGroup()

  /// Takes the pipe over. The process descriptor stays the caller's, who keeps it open until `waitUntilComplete()` has
  /// returned.
  ///
  /// - Throws: `limitReached` if the thread cannot be started. The pipe stays the caller's then.
  init(
    pipe: Int32, processDescriptor: Int32, limitBytes: Int, killsFlood: Bool
  ) throws(InstarError) {
    self.limitBytes = max(0, limitBytes)
    _ = fcntl(pipe, F_SETFL, O_NONBLOCK)
    complete.enter()
    let reason = startThread(named: "instar-output", stackBytes: 256 << 10) { [self] in
      read(pipe: pipe, processDescriptor: processDescriptor, killsFlood: killsFlood)
      close(pipe)
      complete.leave()
    }
    guard reason == 0 else {
      complete.leave()
      throw .systemFailure("cannot read the output of a process", reason)
    }
  }

  func waitUntilComplete() { complete.wait() }

  private var isExceeded: Bool { state.withLock { $0.totalBytes } > limitBytes }

  var text: String {
    let (head, tail, totalBytes) = state.withLock { ($0.head, $0.tail, $0.totalBytes) }
    let end = tail.suffix(limitBytes - head.count)
    let leftOut = totalBytes - head.count - end.count
    guard leftOut > 0 else { return String(decoding: head + end, as: UTF8.self) }
    return String(decoding: head, as: UTF8.self) + "\n… \(leftOut) bytes left out …\n"
      + String(decoding: end, as: UTF8.self)
  }

  private func read(pipe: Int32, processDescriptor: Int32, killsFlood: Bool) {
    /// After the child's end: no more than a pipe can hold (pipe(7): 1 MiB unless root says otherwise).
    var leftToDrainBytes = 1 << 20
    var hasEnded = false
    while true {
      if !hasEnded {
        var interests = [
          pollfd(fd: pipe, events: Int16(POLLIN), revents: 0),
          pollfd(fd: processDescriptor, events: Int16(POLLIN), revents: 0),
        ]
        if poll(&interests, nfds_t(interests.count), -1) < 0 {
          if errno == EINTR { continue }
          return
        }
        hasEnded = interests[1].revents != 0
      }
      let count = withUnsafeTemporaryAllocation(byteCount: 1 << 16, alignment: 16) { chunk -> Int in
        let count = Glibc.read(pipe, chunk.baseAddress, chunk.count)
        if count > 0 { append(UnsafeRawBufferPointer(rebasing: chunk[..<count])) }
        return count
      }
      if count == 0 { return }
      if count < 0 {
        if errno == EINTR { continue }
        if errno == EAGAIN, !hasEnded { continue }
        return
      }
      if killsFlood, isExceeded, !hasEnded {
        _ = instar_pidfd_send_signal(processDescriptor, SIGKILL)
      }
      if hasEnded {
        leftToDrainBytes -= count
        if leftToDrainBytes <= 0 { return }
      }
    }
  }

  private func append(_ bytes: UnsafeRawBufferPointer) {
    state.withLock { state in
      state.totalBytes += bytes.count
      let room = max(0, limitBytes / 2 - state.head.count)
      state.head.append(contentsOf: bytes.prefix(room))
      state.tail.append(contentsOf: bytes.dropFirst(room))
      // Cut back only when it has doubled, so that a flood is not a copy of the tail for each chunk.
      let keptBytes = limitBytes - limitBytes / 2
      if state.tail.count > 2 * keptBytes {
        state.tail.removeFirst(state.tail.count - keptBytes)
      }
    }
  }
}
