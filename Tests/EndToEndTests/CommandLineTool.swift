import Foundation
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

/// `instarctl` of the build that the tests belong to, run as a user runs it.
enum CommandLineTool {
  /// How one call ended.
  struct Answer {
    var status: Int32
    var output: String
    var messages: String

    /// Standard output as `--json` promises it: one object per line.
    func objects<Object: Decodable>(_ type: Object.Type) throws -> [Object] {
      try output.split(separator: "\n").map {
        try JSONDecoder().decode(type, from: Data($0.utf8))
      }
    }

    /// The statements of changes of schema among those that the launch argument `-com.apple.CoreData.SQLDebug` shows.
    var executedStatements: [String] {
      let start = "CoreData: sql: "
      var statements: [String] = []
      var isInStatement = false
      for line in messages.split(separator: "\n", omittingEmptySubsequences: false) {
        if line.hasPrefix(start) {
          statements.append(String(line.dropFirst(start.count)))
          isInStatement = true
        } else if line.hasPrefix("CoreData: ") {
          isInStatement = false
        } else if isInStatement {
          statements[statements.count - 1] += "\n" + line
        }
      }
      // What is only checked, and what is kept aside during a run, changes no schema.
      return Self.changes(
        statements.filter { !$0.contains("'integrity-check'") && !$0.contains("temp.instar_") })
    }

    /// The statements that change tables or rows.
    static func changes(_ statements: [String]) -> [String] {
      let kinds = ["ALTER", "CREATE", "DROP", "INSERT", "UPDATE", "DELETE"]
      return statements.filter { statement in kinds.contains { statement.hasPrefix($0) } }
    }

    func errors() throws -> [InstarError] {
      try objects([String: InstarError].self).compactMap { $0["error"] }
    }
  }

  /// The programs are beside the test bundle, unless `INSTAR_BUILD_DIR` names another build.
  static let productsFolder =
    ProcessInfo.processInfo.environment["INSTAR_BUILD_DIR"].map { URL(fileURLWithPath: $0) }
    ?? URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()

  /// The top of the repository.
  static let repository = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  /// Runs `instarctl` to its end.
  ///
  /// - Parameter whileRunning: called once the process runs, with its pid.
  static func run(
    _ arguments: [String], in folder: URL? = nil, environment: [String: String] = [:],
    whileRunning: @Sendable (Int32) async throws -> Void = { _ in }
  ) async throws -> Answer {
    let scratch = try TemporaryFolder()
    let output = scratch.url.appendingPathComponent("output")
    let messages = scratch.url.appendingPathComponent("messages")
    for file in [output, messages] { try Data().write(to: file) }

    let process = Process()
    process.executableURL = productsFolder.appendingPathComponent("instarctl")
    process.arguments = arguments
    process.currentDirectoryURL = folder
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    process.standardInput = FileHandle.nullDevice
    let outputs = try [output, messages].map(FileHandle.init(forWritingTo:))
    // Foundation keeps the handles of a process that ended. With some 1,300 open files its next `run` reads beyond its
    // list of them, and crashes.
    defer { for handle in outputs { try? handle.close() } }
    process.standardOutput = outputs[0]
    process.standardError = outputs[1]
    let ended = AsyncStream<Void>.makeStream()
    process.terminationHandler = { _ in ended.continuation.finish() }
    try process.run()
    try await whileRunning(process.processIdentifier)
    for await _ in ended.stream {}
    return Answer(
      status: process.terminationStatus,
      output: try String(contentsOf: output, encoding: .utf8),
      messages: try String(contentsOf: messages, encoding: .utf8))
  }

  static func run(_ arguments: String...) async throws -> Answer {
    try await run(arguments)
  }
}
