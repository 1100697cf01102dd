import Foundation
import InstarLinux
import InstarTestSupport
import Testing

/// systemd-socket-activate(1)
private let activator = "/usr/bin/systemd-socket-activate"

/// A Unix socket that the service manager makes: systemd-socket-activate(1) stands for it.
@Suite("Socket activation", .enabled(if: access(activator, X_OK) == 0, "there is no systemd"))
struct SocketActivationTests {
  private let folder: TemporaryFolder
  private var socket: String { folder.path("manager.sock") }

  init() throws {
    folder = try TemporaryFolder()
    try FileManager.default.createDirectory(
      atPath: folder.path("srv"), withIntermediateDirectories: false)
    try folder.write(
      """
      state: \(folder.path("state"))
      socket: \(folder.path("own.sock"))
      plugins: []
      watches: [{folder: \(folder.path("srv"))}]
      """, to: "instard.yml")
  }

  private var command: [String] {
    [
      LogRecorder.buildFolder + "/instard", "--foreground", "--config",
      folder.path("instard.yml"),
    ]
  }

  private func activate(_ options: String...) throws -> ChildProcess {
    try ChildProcess.start(
      executable: activator, arguments: options + command, output: .captured(limitBytes: 1 << 16))
  }

  private func status(_ socket: String) throws -> (
    status: ChildProcess.Termination?, output: String
  ) {
    let client = try ChildProcess.start(
      executable: LogRecorder.buildFolder + "/instarctl",
      arguments: ["status", "--json", "--socket", socket], output: .captured(limitBytes: 1 << 16))
    return (try client.wait(deadline: soon()), client.capturedOutput)
  }

  private func waitForFile(_ path: String) throws {
    let deadline = soon()
    while !FileManager.default.fileExists(atPath: path) {
      try #require(ContinuousClock.now < deadline)
      usleep(10_000)
    }
  }

  @Test("a client starts the daemon, which answers on the socket it was given and leaves it there")
  func onDemand() throws {
    let daemon = try activate("--listen=\(socket)", "--fdname=control")
    defer { daemon.kill() }
    try waitForFile(socket)
    #expect(!daemon.capturedOutput.contains("daemon-started"))
    let answer = try status(socket)
    #expect(answer.status == .exited(0) && answer.output.contains("\"stores\":0"), "\(answer)")
    #expect(!FileManager.default.fileExists(atPath: folder.path("own.sock")))
    daemon.kill(SIGTERM)
    #expect(try daemon.wait(deadline: soon()) == .exited(0))
    #expect(FileManager.default.fileExists(atPath: socket))
  }

  @Test("the socket named 'control' is for clients, and other passed sockets are closed")
  func names() throws {
    let other = folder.path("other.sock")
    let daemon = try activate(
      "--listen=\(other)", "--listen=\(socket)", "--fdname=other:control")
    defer { daemon.kill() }
    try waitForFile(socket)
    let answer = try status(socket)
    #expect(answer.status == .exited(0), "\(answer)")
    daemon.kill(SIGTERM)
    #expect(try daemon.wait(deadline: soon()) == .exited(0))
  }

  @Test(
    "descriptors that were passed to another process, or are not sockets, are left alone",
    arguments: [
      ["LISTEN_FDS": "1", "LISTEN_PID": "1"], ["LISTEN_FDS": "x", "LISTEN_PID": "1"],
      ["LISTEN_FDS": "1"], [:],
    ])
  func foreign(variables: [String: String]) throws {
    let daemon = try ChildProcess.start(
      executable: command[0], arguments: Array(command.dropFirst()),
      environment: ProcessInfo.processInfo.environment.merging(variables) { $1 },
      output: .captured(limitBytes: 1 << 16))
    defer { daemon.kill() }
    try waitForFile(folder.path("own.sock"))
    #expect(try status(folder.path("own.sock")).status == .exited(0))
    daemon.kill(SIGTERM)
    #expect(try daemon.wait(deadline: soon()) == .exited(0))
    #expect(!FileManager.default.fileExists(atPath: folder.path("own.sock")))
  }
}
