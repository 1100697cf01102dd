import ArgumentParser
import Foundation
import Glibc
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire

/// Compiles Swift sources into a plugin with the `swiftc` in PATH.
struct PluginBuilder {
  var installation: Installation
  /// Swift files, and folders of them.
  var sources: [String]
  /// The plugin's absolute path.
  var output: String
  var isDebugBuild: Bool
  var languageMode: LanguageMode
  /// The name of the module; `nil` for one from the name of the plugin's file.
  var moduleName: String?
  /// Whether the answer has the findings of `plugin check`.
  var checksPlans = false

  /// The rules of Swift that sources are compiled with.
  enum LanguageMode: String, CaseIterable, ExpressibleByArgument {
    case swift5 = "5"
    case swift6 = "6"
  }

  /// Builds a hidden file beside the output, inspects it, and then renames it to the output.
  ///
  /// A daemon that watches the folder therefore never loads an incomplete plugin. If the build fails, an earlier plugin
  /// of that name is kept.
  ///
  /// - Throws: `buildFailed`, or the error of the inspection.
  func build() async throws(InstarError) -> PluginInspection {
    let files = try SourceFiles.files(of: sources) { failure($0, next: $1) }
    let compiler = try compiler()
    let folder = URL(fileURLWithPath: output).deletingLastPathComponent().path
    guard FileManager.default.fileExists(atPath: folder) else {
      throw failure("the folder '\(folder)' does not exist", next: "run: mkdir -p '\(folder)'")
    }
    let unfinished =
      "\(folder)/.\(URL(fileURLWithPath: output).lastPathComponent).building-\(getpid())"
    defer { unlink(unfinished) }

    let compiled =
      isDebugBuild ? try CompiledFiles(plugin: output, installation: installation) : nil
    let compilation = try ChildProcess.start(
      executable: compiler.path,
      arguments: try arguments(compiler, files: files, output: unfinished, compiled: compiled),
      output: .captured(limitBytes: 16 << 20))
    // The compiler runs in its own process group, so Ctrl-C does not reach it.
    let supervisor = try Supervisor()
    let interruption = try Interruption {
      compilation.kill()
      supervisor.cancel()
    }
    let termination = try compilation.wait()
    if interruption.hasHappened { throw interrupted }
    try requireSuccess(termination, compilerOutput: compilation.capturedOutput)

    let note = try note(of: unfinished)
    let plans: [PlanManifest]
    do {
      plans = try await supervisor.plans(of: unfinished)
    } catch {
      if interruption.hasHappened { throw interrupted }
      throw failure(
        error.cause.replacing(unfinished, with: output), code: error.code, next: error.next)
    }
    try install(unfinished, in: folder)
    var answer = PluginInspection(plugin: output, note: note)
    answer.debug = isDebugBuild
    if checksPlans {
      answer.findings = plans.flatMap { PlanCheck(plan: $0, plugin: output).findings }
    }
    return answer
  }

  /// Passes on what the compiler printed, with advice.
  private func requireSuccess(
    _ termination: ChildProcess.Termination?, compilerOutput: String
  ) throws(InstarError) {
    Console.pass(compilerOutput)
    let advice =
      languageMode == .swift6 ? ConcurrencyMessages(compilerOutput: compilerOutput).lines : []
    Console.note(advice)
    guard termination == .exited(0) else {
      if let missing = LinkerMessages(compilerOutput: compilerOutput) {
        throw failure(missing.cause, next: missing.next)
      }
      throw failure(
        "swiftc \(termination?.description ?? "did not end")",
        next: "fix the compiler errors above and build again"
          + (advice.isEmpty ? "" : ", or build with --swift-version 5"))
    }
  }

  private func note(of plugin: String) throws(InstarError) -> PluginNote {
    do {
      return try PluginNote.read(path: plugin)
    } catch {
      throw failure(
        "no source file contains #InstarPlugin",
        next: "add '#InstarPlugin(NameOfYourPlan.self)' to a source file and build again")
    }
  }

  /// Renames the finished plugin to the output.
  private func install(_ plugin: String, in folder: String) throws(InstarError) {
    try DurableFile.synchronizeFile(plugin)
    guard rename(plugin, output) == 0 else {
      throw failure(
        "cannot rename the finished plugin: \(String(cString: strerror(errno)))",
        next: "run: ls -ld '\(folder)'")
    }
  }

  private var interrupted: InstarError {
    failure("interrupted", next: "run the command again")
  }

  private func failure(
    _ cause: String, code: InstarError.Code = .buildFailed, next: String? = nil
  ) -> InstarError {
    InstarError(code, "cannot build plugin '\(output)'", cause: cause, next: next)
  }

  // MARK: - Compiler

  private func compiler() throws(InstarError) -> SDKCompiler {
    guard let compiler = SDKCompiler(installation) else {
      throw failure(SDKCompiler.missingCause, next: SDKCompiler.missingAdvice)
    }
    return compiler
  }

  private func arguments(
    _ compiler: SDKCompiler, files: [String], output: String, compiled: CompiledFiles?
  ) throws(InstarError) -> [String] {
    let module = moduleName ?? defaultModuleName
    // Models of a package may be `package`, which needs a package.
    var arguments = [
      "-emit-library", "-parse-as-library", "-module-name", module, "-package-name", module,
    ]
    arguments += ["-swift-version", languageMode.rawValue]
    if isatty(STDERR_FILENO) == 1 { arguments.append("-color-diagnostics") }
    arguments += SDKCompiler.implicitImport
    if let compiled {
      arguments += Self.debugOptions
      arguments += try compiled.options(for: files)
    } else {
      // One job for all files: the optimizer sees them together.
      arguments += ["-wmo", "-O"]
    }
    arguments += compiler.importArguments + compiler.linkArguments
    // The worker loads libInstar.so and the Swift runtime before a plugin, so the plugin needs no search path, and must
    // not contain one of the building machine.
    arguments += ["-no-toolchain-stdlib-rpath", "-Xlinker", "-z", "-Xlinker", "defs"]
    return arguments + ["-o", output] + files
  }

  /// Without optimization the compiler uses generic code that libswiftSwiftOnoneSupport.so has ready. The worker is
  /// optimized, so neither it nor the packages have that library: the plugin has that code itself.
  ///
  /// Only the frontend gets `-g`: for it the driver would make a module, and leave it in the current folder.
  private static let debugOptions = [
    "-Onone", "-Xfrontend", "-g", "-Xllvm", "-sil-disable-pass=use-prespecialized",
    "-Xfrontend", "-disable-autolink-library", "-Xfrontend", "swiftSwiftOnoneSupport",
  ]

  /// A module name from the plugin's file name: one that Swift accepts and no other module has.
  private var defaultModuleName: String {
    let stem = URL(fileURLWithPath: output).deletingPathExtension().lastPathComponent
    var name = String(
      stem.unicodeScalars.map {
        $0.isASCII && ($0.properties.isAlphabetic || ("0"..."9").contains($0))
          ? Character($0) : "_"
      })
    if name.first?.isNumber ?? true { name = "_" + name }
    let isTaken = FileManager.default.fileExists(
      atPath: installation.modulesFolder + "/\(name).swiftmodule")
    return isTaken || ["Swift", "Foundation", "Glibc"].contains(name) ? name + "Plugin" : name
  }
}
