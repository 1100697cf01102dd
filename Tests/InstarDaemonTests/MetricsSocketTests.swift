import Foundation
import InstarConfiguration
import InstarLinux
import InstarSchema
import InstarTestSupport
import Synchronization
import Testing

@testable import InstarDaemon

/// A socket for metrics whose loop answers at once, and clients that speak HTTP by hand.
@Suite("The socket for metrics")
struct MetricsSocketTests {
  private let folder: TemporaryFolder
  private let path: String
  private let socket: MetricsSocket
  private let questions = Questions()

  private final class Questions: Sendable {
    let count = Atomic<Int>(0)
  }

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path("metrics.sock")
    socket = try MetricsSocket(at: .socket(path: path)) { [questions] reply in
      questions.count.add(1, ordering: .relaxed)
      reply("instar_paused 0\n")
      return true
    }
  }

  private func connect() throws -> LineChannel {
    LineChannel(descriptor: try UnixSocket.connect(to: path))
  }

  /// All lines until the daemon closes the connection.
  private func lines(_ channel: LineChannel) throws -> [String] {
    var lines: [String] = []
    while case .line(let line) = try channel.receive(deadline: soon()) {
      lines.append(String(decoding: line, as: UTF8.self).trimmingCharacters(in: ["\r"]))
    }
    return lines
  }

  private func answer(_ request: String) throws -> [String] {
    let channel = try connect()
    // The daemon may close before all is sent.
    try? channel.send(Data(request.utf8))
    return try lines(channel)
  }

  private static let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"

  @Test("a client gets the metrics, in the type of Prometheus' text format")
  func get() throws {
    let lines = try answer(Self.request)
    #expect(lines.first == "HTTP/1.1 200 OK")
    #expect(lines.contains("Content-Type: text/plain; version=0.0.4; charset=utf-8"))
    #expect(lines.contains("Content-Length: 16") && lines.suffix(2) == ["", "instar_paused 0"])
    #expect(try answer("HEAD /metrics?x=1 HTTP/1.0\n\n").last == "")
    #expect(try answer("GET http://localhost/metrics HTTP/1.1\n\n").last == "instar_paused 0")
  }

  @Test("many clients ask the loop twice a second at most")
  func cached() throws {
    let began = ContinuousClock.now
    for _ in 0..<50 { #expect(try answer(Self.request).last == "instar_paused 0") }
    let halfSeconds = Int((ContinuousClock.now - began) / .milliseconds(500))
    #expect(questions.count.load(ordering: .relaxed) <= halfSeconds + 1)
  }

  @Test(
    "who asks for anything else gets an answer that says so",
    arguments: [
      ("POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
      ("GET / HTTP/1.1\r\n\r\n", "404 Not Found"), ("GET /metrics\r\n\r\n", "400 Bad Request"),
      ("\u{1}\u{0}\u{FFFD}\r\n\r\n", "400 Bad Request"),
      ("GET  /metrics HTTP/1.1\r\n\r\n", "400 Bad Request"),
      (
        "GET /metrics HTTP/1.1\r\n" + String(repeating: "a: b\r\n", count: 200) + "\r\n",
        "431 Request Header Fields Too Large"
      ),
    ])
  func refused(_ request: String, _ status: String) throws {
    #expect(try answer(request).first == "HTTP/1.1 \(status)")
    #expect(try answer(Self.request).last == "instar_paused 0")
  }

  @Test("a line that is too long ends the connection")
  func long() throws {
    #expect(try answer("GET /" + String(repeating: "x", count: 1 << 20)) == [])
    #expect(try answer(Self.request).last == "instar_paused 0")
  }

  @Test("silent and slow clients keep nobody out: the oldest is cut off")
  func silent() throws {
    var silent: [LineChannel] = []
    for number in 0..<200 {
      let channel = try connect()
      if number % 2 == 0 { try channel.send(Data("GET /metrics HT".utf8)) }
      silent.append(channel)
    }
    #expect(try answer(Self.request).last == "instar_paused 0")
    guard case .closed = try silent[0].receive(deadline: soon()) else {
      Issue.record("the first client is still connected")
      return
    }
  }

  @Test("a loop that has ended is not waited for")
  func stopped() throws {
    let other = folder.path("other.sock")
    let socket = try MetricsSocket(at: .socket(path: other)) { _ in false }
    let channel = LineChannel(descriptor: try UnixSocket.connect(to: other))
    try channel.send(Data(Self.request.utf8))
    #expect(try lines(channel).first == "HTTP/1.1 503 Service Unavailable")
    socket.close()
    #expect(access(other, F_OK) != 0)
  }

  @Test("two daemons cannot share a port or a path")
  func taken() throws {
    let taken = #expect(throws: InstarError.self) {
      _ = try MetricsSocket(at: .socket(path: path)) { _ in true }
    }
    #expect(taken?.code == .metricsFailed && taken?.next?.contains("'metrics'") == true)
    let port = try FreePort.any()
    let first = try MetricsSocket(at: .loopback(host: "127.0.0.1", port: port)) { _ in true }
    defer { first.close() }
    let second = #expect(throws: InstarError.self) {
      _ = try MetricsSocket(at: .loopback(host: "127.0.0.1", port: port)) { _ in true }
    }
    #expect(second?.code == .metricsFailed && second?.cause == "Address already in use")
  }
}
