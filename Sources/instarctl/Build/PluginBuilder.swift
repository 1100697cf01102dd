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

  /// The Swift files of the sources.
  ///
  /// - Throws: `missingFile`, `buildFailed`.
  func files() throws(InstarError) -> [String] {
    try SourceFiles.files(of: sources) { failure($0, next: $1) }
  }

  /// Before the compiler works for a minute in vain.
  private func requireWritable(_ folder: String) throws(InstarError) {
    guard access(folder, W_OK | X_OK) == 0 else {
      let reason = errno
      throw failure(
        "this user cannot write in '\(folder)': \(String(cString: strerror(reason)))",
        next: InstarError.adviceOnWriting(in: folder, reason))
    }
    if let status = stat(of: output), status.isFolder {
      throw failure(
        "'\(output)' is a folder", next: "name the file of the plugin, such as: -o NAME.so")
    }
  }

  /// Builds a hidden file beside the output, inspects it, and then renames it to the output.
  ///
  /// A daemon that watches the folder therefore never loads an incomplete plugin. If the build fails, an earlier plugin
  /// of that name is kept.
  ///
  /// - Throws: `buildFailed`, `missingFile`, or the error of the inspection.
  func build() async throws(InstarError) -> PluginInspection {
    let files = try files()
    let compiler = try compiler()
    let folder = URL(fileURLWithPath: output).deletingLastPathComponent().path
    guard FileManager.default.fileExists(atPath: folder) else {
      throw failure(
        "the folder '\(folder)' does not exist", next: "run: mkdir -p \(CommandText.quoted(folder))"
      )
    }
    try requireWritable(folder)
    UnfinishedPlugin.removeAbandoned(of: output)
    // Its lock keeps out other debug builds, which would write the same file, until that file is installed.
    let compiled =
      isDebugBuild ? try CompiledFiles(plugin: output, installation: installation) : nil
    let unfinished = compiled?.unfinishedPlugin ?? UnfinishedPlugin.path(of: output)
    defer {
      unlink(unfinished)
      compiled?.unlock()
    }

    let compilation = try compile(compiler, files: files, output: unfinished, compiled: compiled)
    try requireSuccess(compilation)
    let supervisor = try Supervisor()
    let interruption = try Interruption { supervisor.cancel() }

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
      answer.findings =
        plans.flatMap { PlanCheck(plan: $0, plugin: output).findings }
        + DefaultsCheck.findings(on: output)
    }
    return answer
  }

  /// Passes on what the compiler printed, with advice.
  private func requireSuccess(_ compilation: Outcome) throws(InstarError) {
    Console.pass(CompilerMessages.withoutFollowUps(compilation.output))
    let advice =
      languageMode == .swift6 ? ConcurrencyMessages(compilerOutput: compilation.output).lines : []
    Console.note(advice)
    guard compilation.termination == .exited(0) else {
      if let missing = LinkerMessages(compilerOutput: compilation.output) {
        throw failure(missing.cause, next: missing.next)
      }
      throw failure(
        "swiftc \(compilation.termination?.description ?? "did not end")",
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
    failure("interrupted", next: CommandText.repetition)
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

  /// How a program ended, and what it printed.
  private struct Outcome {
    var termination: ChildProcess.Termination?
    var output: String
  }

  /// Compiles the sources with their models expanded, and again as they are if the compiler then says something else.
  ///
  /// So the author of a plan with an error or warning waits longer, and sees the same messages as in an editor.
  private func compile(
    _ compiler: SDKCompiler, files: [String], output: String, compiled: CompiledFiles?
  ) throws(InstarError) -> Outcome {
    let folder = compiled?.expandedSources ?? UnfinishedPlugin.expandedSources(of: output)
    // A killed build may have left this folder. If it cannot be removed, the compiler reads the sources as they are.
    try? FileManager.default.removeItem(atPath: folder)
    // Nothing reads what is left of it.
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let arguments = try arguments(compiler, files: files, output: output)
    let expanded = try ExpandedSources(of: files, in: folder) { arguments throws(InstarError) in
      try run(installation.macroExecutable, arguments).termination == .exited(0)
    }
    if let expanded {
      let outcome = try run(
        compiler.path,
        arguments + expanded.arguments + mode(files, compiled: compiled, expanded: expanded))
      guard expanded.differs(outcome.termination, outcome.output) else { return outcome }
    }
    return try run(compiler.path, arguments + mode(files, compiled: compiled, expanded: nil))
  }

  private func run(_ program: String, _ arguments: [String]) throws(InstarError) -> Outcome {
    let process = try ChildProcess.start(
      executable: program, arguments: arguments, output: .captured(limitBytes: 16 << 20))
    // The program runs in its own process group, so Ctrl-C does not reach it.
    let interruption = try Interruption { process.kill() }
    let termination = try process.wait()
    if interruption.hasHappened { throw interrupted }
    return Outcome(termination: termination, output: process.capturedOutput)
  }

  private func arguments(
    _ compiler: SDKCompiler, files: [String], output: String
  ) throws(InstarError) -> [String] {
    let module = moduleName ?? defaultModuleName
    // Models of a package may be `package`, which needs a package.
    var arguments = [
      "-emit-library", "-parse-as-library", "-module-name", module, "-package-name", module,
    ]
    arguments += ["-swift-version", languageMode.rawValue]
    if isatty(STDERR_FILENO) == 1 { arguments.append("-color-diagnostics") }
    arguments += SDKCompiler.implicitImport
    arguments += compiler.importArguments + compiler.linkArguments
    // The worker loads libInstar.so and the Swift runtime before a plugin, so the plugin needs no search path, and must
    // not contain one of the building machine.
    arguments += ["-no-toolchain-stdlib-rpath", "-Xlinker", "-z", "-Xlinker", "defs"]
    return arguments + ["-o", output] + files
  }

  /// The options for what is compiled together, and how it is optimized.
  private func mode(
    _ files: [String], compiled: CompiledFiles?, expanded: ExpandedSources?
  ) throws(InstarError) -> [String] {
    guard let compiled else {
      // One job for all files: the optimizer sees them together. LLVM then takes a thread for each file.
      let processors = ProcessInfo.processInfo.activeProcessorCount
      return ["-wmo", "-O", "-num-threads", String(processors)]
    }
    return Self.debugOptions + (try compiled.options(for: files, expanded: expanded))
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
