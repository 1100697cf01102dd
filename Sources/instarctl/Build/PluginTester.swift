import Foundation
import InstarLinux
import InstarSchema

/// Compiles the sources and the tests of a plugin, and runs the tests.
struct PluginTester {
  var installation: Installation
  /// The absolute path of the folder with `Tests`, and with the plan in `Sources` or in the folder itself.
  var folder: String
  var languageMode: PluginBuilder.LanguageMode
  /// The name of the plugin's module; `nil` for that of the folder in `Sources`.
  var moduleName: String?
  /// Which tests to run; all if it is empty.
  var filters: [String]

  /// How the tests ended.
  struct Outcome: CommandOutput {
    var folder: String
    var passed: Bool
    var error: InstarError?

    var lines: [ConsoleLine] { [] }
  }

  /// Runs the tests. With `outputToErrors`, all of their output goes to standard error.
  ///
  /// Tests of Swift Testing are compiled here, in two jobs. If a file imports XCTest, `swift test` compiles and runs
  /// all tests, because only it can find those of XCTest.
  ///
  /// - Throws: `buildFailed` if the tests could not run.
  func run(outputToErrors: Bool) throws(InstarError) -> Outcome {
    let sources = try SourceFiles.files(of: [folder]) { failure($0, next: $1) }
    let tests = SourceFiles.swiftFiles(below: "\(folder)/\(SourceFiles.testsFolder)")
    guard !tests.isEmpty else {
      throw failure(
        "the folder '\(folder)/Tests' contains no Swift file",
        next: "write tests there; run: instarctl plugin new NAME, and copy its tests")
    }
    guard let compiler = SDKCompiler(installation) else {
      throw failure(SDKCompiler.missingCause, next: SDKCompiler.missingAdvice)
    }
    let program: String
    var arguments: [String] = []
    if try usesXCTest(tests) {
      guard let swift = SDKCompiler.program("swift") else {
        throw failure("no 'swift' in PATH", next: SDKCompiler.missingAdvice)
      }
      program = swift
      // The files that SwiftPM adds for XCTest do not get the options of the package's targets.
      arguments =
        ["test", "--package-path", folder]
        + compiler.importArguments.flatMap { ["-Xswiftc", $0] }
    } else {
      program = try build(compiler, sources: sources, tests: tests)
    }
    for filter in filters { arguments += ["--filter", filter] }
    return try runTests(program, arguments, outputToErrors: outputToErrors)
  }

  private func usesXCTest(_ files: [String]) throws(InstarError) -> Bool {
    for file in files {
      do {
        let text = try String(contentsOfFile: file, encoding: .utf8)
        if text.contains(/(?m)^\s*import XCTest\b/) { return true }
      } catch {
        throw failure(
          "cannot read '\(file)': \(InstarError.reason(of: error))", next: "run: ls -l '\(file)'")
      }
    }
    return false
  }

  private func build(
    _ compiler: SDKCompiler, sources: [String], tests: [String]
  ) throws(InstarError) -> String {
    let scratch = folder + "/.build/plugin-test"
    let main = scratch + "/TestMain.swift"
    do {
      try FileManager.default.createDirectory(
        atPath: scratch, withIntermediateDirectories: true)
      // As SwiftPM's own main file of tests.
      try Data(
        """
        import Testing

        @main enum TestMain {
          static func main() async { await Testing.__swiftPMEntryPoint() as Never }
        }

        """.utf8
      ).write(to: URL(fileURLWithPath: main))
    } catch {
      throw failure(
        "cannot write '\(scratch)': \(InstarError.reason(of: error))",
        next: "run: ls -ld '\(folder)'")
    }
    let module = moduleName ?? nameOfModule(sources)
    let builder = ProgramBuilder(
      compiler: compiler, module: module, languageMode: languageMode, folder: scratch,
      failure: { failure($0, next: $1) })
    try builder.buildModule(sources)
    return try builder.buildProgram(module + "Tests", tests + [main])
  }

  /// The name of the one folder in `Sources`, as SwiftPM names modules; else that of the folder itself.
  private func nameOfModule(_ sources: [String]) -> String {
    let root = SourceFiles.sourcesFolder(of: folder) + "/"
    let folders = Set(
      sources.map {
        $0.dropFirst(root.count).split(separator: "/").dropLast().first.map(String.init)
      })
    if folders.count == 1, let name = folders.first ?? nil { return name }
    return URL(fileURLWithPath: folder).lastPathComponent
  }

  private func runTests(
    _ program: String, _ arguments: [String], outputToErrors: Bool
  ) throws(InstarError) -> Outcome {
    var environment = ProcessInfo.processInfo.environment
    // What the tests start, and what a package compiles against, is of this installation.
    if let build = installation.buildFolder { environment["INSTAR_BUILD_DIR"] = build }
    environment["INSTAR_TEST_SOURCES"] = folder
    // A shell passes one of the two descriptors for the other.
    let process = try ChildProcess.start(
      executable: outputToErrors ? "/bin/sh" : program,
      arguments: outputToErrors ? ["-c", "exec \"$@\" >&2", "sh", program] + arguments : arguments,
      environment: environment)
    let interruption = try Interruption { process.kill() }
    let termination = try process.wait()
    if interruption.hasHappened { throw failure("interrupted", next: CommandText.repetition) }
    var outcome = Outcome(folder: folder, passed: termination == .exited(0))
    switch termination {
    case .exited(0): break
    // Of Swift Testing: no test was found (EX_UNAVAILABLE).
    case .exited(69):
      let intention =
        filters.isEmpty
        ? "write '@Test' before a function in '\(folder)/Tests', then run" : "to run all tests, run"
      outcome.error = failure(
        filters.isEmpty ? "there is no test" : "no test matches \(filters.joined(separator: ", "))",
        next: "\(intention): instarctl plugin test '\(folder)'", code: .testsFailed)
    case .exited(1):
      outcome.error = failure(
        "a test failed", next: "fix what the tests report above", code: .testsFailed)
    default:
      outcome.error = failure(
        "the program of the tests \(termination?.description ?? "did not end")",
        next: "fix what the tests report above", code: .testsFailed)
    }
    return outcome
  }

  private func failure(
    _ cause: String, next: String?, code: InstarError.Code = .buildFailed
  ) -> InstarError {
    InstarError(code, "cannot test plugin '\(folder)'", cause: cause, next: next)
  }
}
