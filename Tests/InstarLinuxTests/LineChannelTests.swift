import Foundation
import Glibc
import InstarLinux
import InstarSchema
import InstarTestSupport
import Testing

@Suite("LineChannel")
struct LineChannelTests {
  /// Both ends in this process.
  func pair(lineLimitBytes: Int = 1024) throws -> (LineChannel, LineChannel) {
    let (one, descriptor) = try LineChannel.pair(lineLimitBytes: lineLimitBytes)
    return (one, LineChannel(descriptor: descriptor, lineLimitBytes: lineLimitBytes))
  }

  @Test("lines arrive in order, one at a time, whether they were sent together or in pieces")
  func order() throws {
    let (one, other) = try pair()
    try one.send(Data("first\n".utf8))
    try one.send(Data("second".utf8))
    #expect(send(one.descriptor, "thi", 3, 0) == 3)
    #expect(try other.receive(deadline: soon()) == .line(Data("first".utf8)))
    #expect(try other.receive(deadline: soon()) == .line(Data("second".utf8)))
    #expect(try other.receive(deadline: .now) == .timedOut)
    #expect(send(one.descriptor, "rd\n\n", 4, 0) == 4)
    #expect(try other.receive(deadline: soon()) == .line(Data("third".utf8)))
    #expect(try other.receive(deadline: soon()) == .line(Data()))
  }

  @Test("lines that arrive during a pause are received in order, and the end is seen after them")
  func pause() throws {
    let (one, other) = try pair()
    let sender = OtherThread {
      for number in 0..<50 { try one.send(Data("\(number)".utf8)) }
      one.close()
    }
    for number in 0..<50 {
      #expect(
        try other.receive(deadline: soon(), pause: .milliseconds(1))
          == .line(Data("\(number)".utf8)))
    }
    #expect(try other.receive(deadline: soon(), pause: .milliseconds(1)) == .closed)
    try sender.value()
    let (speaker, silent) = try pair()
    let start = ContinuousClock.now
    #expect(try silent.receive(deadline: .now, pause: .milliseconds(20)) == .timedOut)
    #expect(.now - start >= .milliseconds(20))
    speaker.close()
  }

  @Test("a line of exactly the limit is received, one byte more ends the conversation")
  func limit() throws {
    let (one, other) = try pair()
    try one.send(Data(repeating: 0x61, count: 1024))
    #expect(try other.receive(deadline: soon()) == .line(Data(repeating: 0x61, count: 1024)))
    try one.send(Data(repeating: 0x61, count: 1025))
    let error = try instarError { _ = try other.receive(deadline: soon()) }
    #expect(error.code == .protocolViolation)
    #expect(error.cause.contains("1024"))
    #expect(try other.receive() == .closed)
    #expect(try one.receive() == .closed)
  }

  @Test("a line without an end is refused at the limit, not collected")
  func endless() throws {
    let (one, other) = try pair(lineLimitBytes: 100_000)
    let sender = OtherThread {
      // Ends when the receiver has closed the conversation.
      while send(one.descriptor, [UInt8](repeating: 0x61, count: 4096), 4096, Int32(MSG_NOSIGNAL))
        > 0
      {}
    }
    let error = try instarError { _ = try other.receive(deadline: soon()) }
    #expect(error.code == .protocolViolation)
    try sender.value()
  }

  @Test("the end of the other process is seen after its last whole line")
  func end() throws {
    let (one, descriptor) = try LineChannel.pair()
    #expect(send(descriptor, "whole\ncut", 9, 0) == 9)
    close(descriptor)
    #expect(try one.receive() == .line(Data("whole".utf8)))
    #expect(try one.receive() == .closed)
    #expect(try one.receive() == .closed)
    let error = try instarError { try one.send(Data("x".utf8)) }
    #expect(error.code == .interrupted)
  }

  @Test("sending to a process that reads nothing ends after a while, and with it the conversation")
  func unread() throws {
    let (one, other) = try pair()
    let error = try instarError {
      try one.send(Data(repeating: 0x61, count: 8 << 20), patience: .milliseconds(100))
    }
    #expect(error.code == .interrupted)
    #expect(error.cause.hasPrefix("the other process read nothing for"))
    #expect(try one.receive() == .closed)
    #expect(throws: InstarError.self) { try one.send(Data("x".utf8)) }
    _ = other
  }

  @Test("a process that ended with unread messages counts as closed")
  func reset() throws {
    let (one, descriptor) = try LineChannel.pair()
    try one.send(Data("never read".utf8))
    close(descriptor)
    #expect(try one.receive() == .closed)
  }

  @Test("closing a channel wakes a thread that waits for a line")
  func closing() throws {
    let (one, other) = try pair()
    let waiting = OtherThread { try one.receive() }
    usleep(20_000)
    one.close()
    #expect(try waiting.value() == .closed)
    #expect(try other.receive() == .closed)
  }

  @Test(
    "lines that several threads send do not mix, also where they are longer than the socket's buffer"
  )
  func threads() throws {
    let size = 400_000
    let (one, other) = try pair(lineLimitBytes: 1 << 20)
    let letters = Array(UInt8(ascii: "a")...UInt8(ascii: "d"))
    let senders = letters.map { letter in
      OtherThread { try one.send(Data(repeating: letter, count: size)) }
    }
    var seen: Set<UInt8> = []
    for _ in letters {
      guard case .line(let line) = try other.receive(deadline: soon()) else {
        throw CancellationError()
      }
      #expect(line.count == size)
      #expect(Set(line).count == 1)
      seen.formUnion(line.prefix(1))
    }
    #expect(seen == Set(letters))
    for sender in senders { try sender.value() }
  }
}
