import Foundation
import InstarTestSupport

/// An article, or another page of documentation, as a reader follows it: writing its files and running its commands.
///
/// - A Swift block whose first line is `// FILE.swift` is that file. A Swift block without a file's name continues the
///   one before it.
/// - An `sh` block is run in the folder of these files.
/// - A `text` block has lines that the commands before it print, in their order. "…" stands for any text.
struct DocumentedPage {
  enum Block {
    /// `isNew` if the block begins the file.
    case source(file: String, text: String, isNew: Bool)
    case commands(String)
    case output([String])
  }

  struct Failure: Error, CustomStringConvertible {
    var description: String
  }

  let blocks: [Block]

  /// - Parameter path: From the top of the repository.
  init(_ path: String) throws {
    let text = try String(
      contentsOf: CommandLineTool.repository.appendingPathComponent(path), encoding: .utf8)
    var file = "Page.swift"
    blocks = text.matches(of: /(?m)^```(swift|sh|text)\n((?s:.*?))^```$/).map { match in
      let content = String(match.2)
      switch match.1 {
      case "swift":
        let name = content.prefixMatch(of: /\/\/ (\S+\.swift)\n/).map { String($0.1) }
        file = name ?? file
        return .source(file: file, text: content, isNew: name != nil)
      case "sh": return .commands(content)
      default:
        return .output(content.split(separator: "\n").map(String.init))
      }
    }
  }

  var hasCommands: Bool {
    blocks.contains { if case .commands = $0 { true } else { false } }
  }

  /// All Swift blocks, one after the other.
  var source: String {
    blocks.compactMap { if case .source(_, let text, _) = $0 { text } else { nil } }
      .joined(separator: "\n")
  }

  /// Does what the page says, in `folder`.
  ///
  /// - Throws: `Failure` where a command fails or prints something else, and where a command wrote a file that the page
  ///   shows differently.
  func follow(in folder: TemporaryFolder) async throws {
    var written: Set<String> = []
    var output = ""
    for block in blocks {
      switch block {
      case .source(let file, let text, let isNew):
        let path = folder.path(file)
        if isNew, !written.contains(file), FileManager.default.fileExists(atPath: path) {
          // A command wrote it, and the page shows it under a line with its name.
          let found = try String(contentsOfFile: path, encoding: .utf8)
          let shown = String(text.drop { $0 != "\n" }.dropFirst())
          guard found == shown else {
            throw Failure(description: "\(file) is shown otherwise than it is:\n\(found)")
          }
        } else {
          let before = isNew ? "" : (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
          try Self.write(before + text + "\n", to: path)
        }
        written.insert(file)
      case .commands(let commands):
        output = try await Self.run(commands, in: folder)
      case .output(let lines):
        try Self.require(lines, in: output)
      }
    }
  }

  /// Writes the page's Swift files, each as the page shows it first.
  func writeSources(in folder: TemporaryFolder) throws {
    var complete: Set<String> = []
    var current: [String: String] = [:]
    for case .source(let file, let text, let isNew) in blocks {
      if isNew, current[file] != nil { complete.insert(file) }
      if !complete.contains(file) { current[file, default: ""] += text + "\n" }
    }
    for (file, text) in current { try Self.write(text, to: folder.path(file)) }
  }

  private static func write(_ text: String, to path: String) throws {
    let url = URL(fileURLWithPath: path)
    try FileManager.default.createDirectory(
      at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(text.utf8).write(to: url)
  }

  /// Runs commands with the programs and the SDK of the build that the tests belong to, in place of the installed ones.
  private static func run(_ commands: String, in folder: TemporaryFolder) async throws -> String {
    let products = CommandLineTool.productsFolder.path
    let script =
      commands
      .replacing("/usr/lib/instar/sdk", with: products).replacing("/usr/lib/instar", with: products)
    let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    let answer = try await Program.run(
      "env",
      [
        "--chdir=\(folder.path)", "PATH=\(products):\(path)", "INSTAR_BUILD_DIR=\(products)",
        "INSTAR_STATE_DIR=\(folder.path("state"))", "HOME=\(folder.path)",
        "bash", "-euo", "pipefail", "-c", script,
      ])
    guard answer.status == 0 else {
      throw Failure(description: "\(commands)\nended with \(answer.status):\n\(answer.messages)")
    }
    return answer.messages
  }

  private static func require(_ lines: [String], in output: String) throws {
    var rest = output.split(separator: "\n")[...]
    for line in lines {
      guard let place = rest.firstIndex(where: { matches(String($0), line) }) else {
        throw Failure(description: "the page shows '\(line)'; printed was:\n\(output)")
      }
      rest = rest[(place + 1)...]
    }
  }

  /// - Parameter pattern: A line in which "…" stands for any text.
  private static func matches(_ line: String, _ pattern: String) -> Bool {
    let parts = pattern.components(separatedBy: "…")
    guard parts.count > 1 else { return line == pattern }
    guard line.hasPrefix(parts[0]) else { return false }
    var rest = line.dropFirst(parts[0].count)
    for part in parts.dropFirst().dropLast() {
      guard let range = rest.range(of: part) else { return false }
      rest = rest[range.upperBound...]
    }
    return rest.hasSuffix(parts[parts.count - 1])
  }
}
