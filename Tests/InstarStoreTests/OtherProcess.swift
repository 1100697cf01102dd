import Foundation

/// Runs the SQLite of Python in another process: a connection that is not this process's.
final class OtherProcess {
  private let process = Process()
  private let input = Pipe()
  private let output = Pipe()

  /// Starts `script`, with `path` as its first argument, and waits until it prints a line.
  init(_ script: String, path: String) throws {
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["python3", "-c", "import sqlite3, sys, os\n" + script, path]
    process.standardInput = input
    process.standardOutput = output
    try process.run()
    waitForLine()
  }

  private func waitForLine() {
    while let byte = try? output.fileHandleForReading.read(upToCount: 1), byte != Data([0x0A]) {
      if byte.isEmpty { return }
    }
  }

  /// Hands the script a line, and waits until it prints one.
  func tell(_ line: String) {
    input.fileHandleForWriting.write(Data((line + "\n").utf8))
    waitForLine()
  }

  func kill() {
    Foundation.kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  deinit { kill() }
}
