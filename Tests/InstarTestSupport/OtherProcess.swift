import Foundation

/// Runs the SQLite of Python in another process: a connection that is not this process's.
public final class OtherProcess {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()

  /// Starts `script`, with `path` as its first argument, and waits until it prints a line.
  public init(_ script: String, path: String) throws {
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["python3", "-c", "import sqlite3, sys, os\n" + script, path]
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    waitForLine()
  }

  /// Begins a transaction of that kind on a store, and holds it until it is told to finish.
  public static func holding(_ store: String, _ kind: String) throws -> OtherProcess {
    try OtherProcess(
      """
      c = sqlite3.connect(sys.argv[1], isolation_level=None)
      c.execute("BEGIN \(kind)")
      print("holding", flush=True)
      sys.stdin.read()
      """, path: store)
  }

  @discardableResult
  private func waitForLine() -> String {
    var line = Data()
    while let byte = try? output.fileHandleForReading.read(upToCount: 1), byte != Data([0x0A]) {
      if byte.isEmpty { break }
      line += byte
    }
    return String(decoding: line, as: UTF8.self)
  }

  /// Hands the script a line, waits until it prints one, and returns that.
  @discardableResult
  public func tell(_ line: String) -> String {
    input.fileHandleForWriting.write(Data((line + "\n").utf8))
    return waitForLine()
  }

  public var pid: Int32 { process.processIdentifier }

  /// Closes the script's input, and waits until it has ended.
  public func finish() {
    try? input.fileHandleForWriting.close()
    process.waitUntilExit()
  }

  public func kill() {
    guard process.isRunning else { return }
    Foundation.kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  deinit { kill() }
}
