import Foundation
import GRDB
import InstarStore

/// A folder for the files of one test, removed with the value that holds it.
final class ProbeFolder {
  let path: String

  init() throws {
    path = FileManager.default.temporaryDirectory.path + "/instar-probe-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func file(_ name: String, _ bytes: some Sequence<UInt8>) throws -> String {
    let file = "\(path)/\(name)"
    try Data(bytes).write(to: URL(fileURLWithPath: file))
    return file
  }

  /// Each file with its bytes and its time of change.
  func contents() throws -> [String: [String]] {
    var result: [String: [String]] = [:]
    for name in try FileManager.default.contentsOfDirectory(atPath: path) {
      let file = "\(path)/\(name)"
      let attributes = try FileManager.default.attributesOfItem(atPath: file)
      let data = FileManager.default.contents(atPath: file) ?? Data()
      result[name] = [
        Digest.hexadecimal(Digest.sha256(data)), "\(attributes[.modificationDate] ?? "")",
      ]
    }
    return result
  }
}

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
    _ = output.fileHandleForReading.availableData
  }

  func kill() {
    Foundation.kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  deinit { kill() }
}
