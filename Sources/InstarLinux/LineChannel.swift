public import Foundation
import CInstar
import Glibc
public import InstarSchema
import Synchronization

/// One end of a conversation between two processes: lines over a stream socket.
///
/// Calls block. Any thread may send; one thread at a time receives, and a second one waits. Any thread may call
/// `close()` at any time, which wakes blocked calls.
///
/// Invariants: bytes are received in order, each once; a line over the limit is never held in memory whole; after
/// `close()` nothing is sent or received; the descriptor is closed with the last reference, so that its number is not
/// reused under a thread in a call.
public final class LineChannel: Sendable {
  public enum Received: Sendable, Hashable {
    /// One line, without its newline.
    case line(Data)
    /// Either end is closed. A line without its end is dropped.
    case closed
    /// The deadline has passed.
    case timedOut
  }

  /// 16 MiB.
  public static let defaultLineLimitBytes = 16 << 20

  /// For poll(2).
  public let descriptor: Int32
  private let lineLimitBytes: Int
  private let terminator: UInt8
  private let incoming: Mutex<Incoming>
  private let outgoing = Mutex(())
  private let isClosed = Atomic<Bool>(false)

  /// Takes ownership of a connected stream socket, which is closed with the channel.
  ///
  /// - Parameters:
  ///   - lineLimitBytes: The longest line that is received, without its end.
  ///   - terminator: What ends a line.
  public init(
    descriptor: Int32, lineLimitBytes: Int = LineChannel.defaultLineLimitBytes,
    terminator: UInt8 = UInt8(ascii: "\n")
  ) {
    self.descriptor = descriptor
    self.lineLimitBytes = lineLimitBytes
    self.terminator = terminator
    incoming = Mutex(Incoming(terminator: terminator))
  }

  deinit {
    Glibc.close(descriptor)
  }

  /// A new conversation: this process's end, and the descriptor that a child gets as its `channel`. Both are
  /// close-on-exec. The caller closes the child's descriptor once the child is started; otherwise the end of the child
  /// is never noticed.
  public static func pair(
    lineLimitBytes: Int = LineChannel.defaultLineLimitBytes
  ) throws(InstarError) -> (channel: LineChannel, childDescriptor: Int32) {
    var ours: Int32 = -1
    var theirs: Int32 = -1
    guard instar_stream_pair(&ours, &theirs) == 0 else {
      throw .systemFailure("cannot create a pair of sockets", errno)
    }
    return (LineChannel(descriptor: ours, lineLimitBytes: lineLimitBytes), theirs)
  }

  /// Sends one line; its end is added where it is missing. Returns when the system has taken all of it. Lines of
  /// several threads do not mix.
  ///
  /// - Parameter patience: How long the other end may read nothing. Then the channel is closed, because part of a line
  ///   may have been sent.
  /// - Throws: `interrupted` where the conversation is over.
  public func send(_ line: Data, patience: Duration = .seconds(60)) throws(InstarError) {
    var line = line
    if line.last != terminator { line.append(terminator) }
    let failure = outgoing.withLock { _ -> Int32 in
      line.withUnsafeBytes { bytes -> Int32 in
        var sent = 0
        var deadline = ContinuousClock.now + patience
        while sent < bytes.count {
          if isClosed.load(ordering: .acquiring) { return EPIPE }
          // No SIGPIPE: the end of the other process is an error of this call, not of this process.
          let count = Glibc.send(
            descriptor, bytes.baseAddress.map { $0 + sent }, bytes.count - sent,
            Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
          if count >= 0 {
            sent += count
            deadline = .now + patience
          } else if errno == EAGAIN {
            if deadline <= .now { return ETIMEDOUT }
            var interest = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            _ = poll(&interest, 1, pollTimeoutMilliseconds(until: deadline))
          } else if errno != EINTR {
            return errno
          }
        }
        return 0
      }
    }
    switch failure {
    case 0: return
    case EPIPE, ECONNRESET:
      throw InstarError(
        .interrupted, "cannot send a message", cause: "the other process closed the channel",
        next: CommandText.repetition)
    case ETIMEDOUT:
      close()
      throw InstarError(
        .interrupted, "cannot send a message",
        cause: "the other process read nothing for \(Int(patience.inSeconds)) s",
        next: CommandText.repetition)
    default:
      throw .systemFailure("cannot send a message", failure)
    }
  }

  /// Waits for the next line.
  ///
  /// - Parameters:
  ///   - deadline: `nil` waits for ever. A deadline that has passed still hands out a line that is there.
  ///   - pause: How long to sleep before the socket is read. Many short lines then arrive together: each that arrives
  ///     while somebody waits for it costs both processes a change of context. `deadline` and `close()` take effect
  ///     after it.
  /// - Throws: `protocolViolation` where a line is longer than the limit; the conversation is over then, for every
  ///   later call too.
  public func receive(
    deadline: ContinuousClock.Instant? = nil, pause: Duration = .zero
  ) throws(InstarError) -> Received {
    try incoming.withLock { (incoming) throws(InstarError) -> Received in
      var hasPaused = pause == .zero
      while true {
        if isClosed.load(ordering: .acquiring) { return .closed }
        if let line = incoming.nextLine() {
          guard line.count <= lineLimitBytes else { throw endForLongLine() }
          return .line(line)
        }
        guard incoming.pendingBytes <= lineLimitBytes else { throw endForLongLine() }
        if incoming.hasEnded { return .closed }
        if !hasPaused {
          Thread.sleep(forTimeInterval: pause.inSeconds)
          hasPaused = true
        }

        var interest = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        let ready = poll(&interest, 1, pollTimeoutMilliseconds(until: deadline))
        if ready < 0 {
          let reason = errno
          if reason == EINTR { continue }
          throw .systemFailure("cannot wait for a message", reason)
        }
        if ready == 0 {
          if let deadline, deadline <= ContinuousClock.now { return .timedOut }
          continue
        }
        let reason = incoming.fill(from: descriptor)
        switch reason {
        case 0, EINTR, EAGAIN: continue
        // The other process ended without having read all that was sent to it.
        case ECONNRESET: incoming.hasEnded = true
        default: throw .systemFailure("cannot receive a message", reason)
        }
      }
    }
  }

  /// Ends the conversation: the other process sees its end, and so does whoever is blocked in a call here.
  public func close() {
    isClosed.store(true, ordering: .releasing)
    shutdown(descriptor, Int32(SHUT_RDWR))
  }

  private func endForLongLine() -> InstarError {
    close()
    return InstarError(
      .protocolViolation, "cannot read a message",
      cause: "the other process sent a line of more than \(lineLimitBytes) bytes",
      next: InstarError.adviceOnOtherVersion)
  }
}

/// The bytes that were received and not yet returned as lines.
private struct Incoming {
  let terminator: UInt8
  private var bytes: [UInt8] = []
  /// Where the next line begins.
  private var start = 0
  /// No end of a line is in `start..<searched`.
  private var searched = 0
  var hasEnded = false

  init(terminator: UInt8) { self.terminator = terminator }

  var pendingBytes: Int { bytes.count - start }

  mutating func nextLine() -> Data? {
    let found = bytes.withUnsafeBytes { bytes -> Int? in
      guard searched < bytes.count, let base = bytes.baseAddress,
        let newline = memchr(base + searched, Int32(terminator), bytes.count - searched)
      else { return nil }
      return UnsafeRawPointer(newline) - base
    }
    guard let end = found else {
      searched = bytes.count
      return nil
    }
    let line = Data(bytes[start..<end])
    start = end + 1
    searched = start
    if start == bytes.count {
      // The buffer of a long message is not kept for the short ones that follow.
      bytes.removeAll(keepingCapacity: bytes.capacity <= 1 << 18)
      start = 0
      searched = 0
    }
    return line
  }

  /// Takes over what can be read now. Returns 0 or an `errno`.
  mutating func fill(from descriptor: Int32) -> Int32 {
    if start > 0 {
      bytes.removeSubrange(0..<start)
      searched -= start
      start = 0
    }
    return withUnsafeTemporaryAllocation(byteCount: 1 << 16, alignment: 16) { chunk -> Int32 in
      let count = recv(descriptor, chunk.baseAddress, chunk.count, Int32(MSG_DONTWAIT))
      if count < 0 { return errno }
      if count == 0 { hasEnded = true }
      bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: chunk[..<count]))
      return 0
    }
  }
}
