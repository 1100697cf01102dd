import Foundation
import InstarTestSupport
import Testing

/// `swiftc`, compiling against the SDK of the build that the tests belong to.
enum SwiftCompiler {
  struct Answer {
    var status: Int32
    /// What the compiler says, or what the program that it built does.
    var messages: String
  }

  static let products = CommandLineTool.productsFolder.path

  /// Compiles files in the way that app targets are compiled.
  ///
  /// - Parameter arguments: What to make of the files, and any other options.
  static func run(_ arguments: [String], files: [String], languageMode: Int = 6) async throws
    -> Answer
  {
    try await Program.run(
      "swiftc",
      ["-swift-version", "\(languageMode)", "-I", products + "/Modules"]
        + ["-load-plugin-executable", products + "/InstarMacros-tool#InstarMacros"]
        + ["-enable-upcoming-feature", "MemberImportVisibility"]
        + (languageMode == 6 ? ["-enable-upcoming-feature", "ExistentialAny"] : [])
        + arguments + files)
  }

  /// Compiles and links a program.
  ///
  /// - Parameter options: Those that an app's build adds.
  static func link(
    _ files: [String], output: String, languageMode: Int, options: [String] = []
  ) async throws -> Answer {
    try await run(
      ["-Onone", "-warnings-as-errors", "-o", output, "-L", products, "-lInstar"]
        + ["-Xlinker", "-rpath", "-Xlinker", products] + options,
      files: files, languageMode: languageMode)
  }

  /// Builds an app that opens the store at the path of its argument, with the models of one version.
  ///
  /// - Parameters:
  ///   - models: The source with the version.
  ///   - body: What the app does with its `context`.
  static func buildApp(_ program: String, models: String, version: String, body: String)
    async throws
  {
    let main = program + "-Main.swift"
    try Data(
      """
      import Foundation
      import Instar

      @main
      enum App {
        static func main() throws {
          let container = try ModelContainer(
            for: Schema(versionedSchema: \(version).self),
            configurations: ModelConfiguration(url: URL(filePath: CommandLine.arguments[1])))
          let context = ModelContext(container)
          \(body)
          try context.save()
          try container.close()
        }
      }
      """.utf8
    ).write(to: URL(fileURLWithPath: main))
    let linked = try await link(
      [models, main], output: program, languageMode: 5, options: ["-parse-as-library"])
    try #require(linked.status == 0, Comment(rawValue: linked.messages))
  }
}

/// Any program, found in PATH or by its path.
enum Program {
  static func run(_ program: String, _ arguments: [String]) async throws -> SwiftCompiler.Answer {
    let scratch = try TemporaryFolder()
    let messages = scratch.url.appendingPathComponent("messages")
    try Data().write(to: messages)
    let handle = try FileHandle(forWritingTo: messages)
    // As in `CommandLineTool.run`.
    defer { try? handle.close() }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [program] + arguments
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = handle
    process.standardError = handle
    let ended = AsyncStream<Void>.makeStream()
    process.terminationHandler = { _ in ended.continuation.finish() }
    try process.run()
    for await _ in ended.stream {}
    return SwiftCompiler.Answer(
      status: process.terminationStatus,
      messages: try String(contentsOf: messages, encoding: .utf8))
  }
}
