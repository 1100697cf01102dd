import Foundation
import InstarLinux
import InstarSchema

/// Compiles the sources of a plugin as a module, and a program that uses it.
struct ProgramBuilder {
  var compiler: SDKCompiler
  /// The name of the plugin's module.
  var module: String
  var languageMode: PluginBuilder.LanguageMode
  /// Gets the module, its objects and the program.
  var folder: String
  /// Makes the command's error of a cause and advice.
  var failure: @Sendable (String, String?) -> InstarError

  private var library: String { "\(folder)/lib\(module).a" }

  /// Compiles the plugin's sources. A program can then import the module, `@testable` too.
  ///
  /// - Throws: `failure`, after the compiler's messages went to standard error.
  func buildModule(_ sources: [String]) throws(InstarError) {
    try compile(
      ["-emit-library", "-static", "-o", library]
        + ["-emit-module", "-emit-module-path", "\(folder)/\(module).swiftmodule"]
        + ["-module-name", module, "-package-name", module, "-enable-testing"]
        + SDKCompiler.implicitImport, sources)
  }

  /// Compiles a program that uses the module.
  ///
  /// - Returns: Its path.
  /// - Throws: As `buildModule`.
  func buildProgram(_ name: String, _ sources: [String]) throws(InstarError) -> String {
    let program = "\(folder)/\(name)"
    try compile(
      ["-o", program, "-module-name", name, "-package-name", module, "-I", folder]
        + compiler.linkArguments + compiler.runPathArguments, sources + [library])
    return program
  }

  private func compile(_ arguments: [String], _ files: [String]) throws(InstarError) {
    // Only the frontend gets `-g`: for it the driver would run further jobs.
    let common = [
      "-Onone", "-wmo", "-parse-as-library", "-Xfrontend", "-g",
      "-swift-version", languageMode.rawValue,
    ]
    let compilation = try ChildProcess.start(
      executable: compiler.path,
      arguments: common + compiler.importArguments + arguments + files,
      output: .captured(limitBytes: 16 << 20))
    // The compiler runs in its own process group, so Ctrl-C does not reach it.
    let interruption = try Interruption { compilation.kill() }
    let termination = try compilation.wait()
    Console.pass(CompilerMessages.withoutFollowUps(compilation.capturedOutput))
    if interruption.hasHappened { throw failure("interrupted", CommandText.repetition) }
    guard termination == .exited(0) else {
      throw failure(
        "swiftc \(termination?.description ?? "did not end")",
        "fix the compiler errors above and \(CommandText.repetition)")
    }
  }
}
