import ArgumentParser
import Foundation
import Glibc
import InstarLinux
import InstarSchema
import InstarSupervisor

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
    let files = try sourceFiles()
    let compiler = try compilerPath()
    let folder = URL(fileURLWithPath: output).deletingLastPathComponent().path
    guard FileManager.default.fileExists(atPath: folder) else {
      throw failure("the folder '\(folder)' does not exist", next: "run: mkdir -p '\(folder)'")
    }
    let unfinished =
      "\(folder)/.\(URL(fileURLWithPath: output).lastPathComponent).building-\(getpid())"
    defer { unlink(unfinished) }

    let compilation = try ChildProcess.start(
      executable: compiler, arguments: arguments(files: files, output: unfinished),
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
    do {
      _ = try await supervisor.plans(of: unfinished)
    } catch {
      if interruption.hasHappened { throw interrupted }
      throw failure(
        error.cause.replacing(unfinished, with: output), code: error.code, next: error.next)
    }
    try install(unfinished, in: folder)
    var answer = PluginInspection(plugin: output, note: note)
    answer.debug = isDebugBuild
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

  // MARK: - Sources

  private func sourceFiles() throws(InstarError) -> [String] {
    var files: [String] = []
    for source in sources {
      let path = FilePath.absolute(source)
      var isFolder: ObjCBool = false
      guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else {
        throw failure("the source '\(source)' does not exist", next: "check the path")
      }
      guard isFolder.boolValue else {
        files.append(path)
        continue
      }
      let found = swiftFiles(below: path)
      guard !found.isEmpty else {
        throw failure(
          "the folder '\(source)' contains no Swift file",
          next: "pass the folder that contains the sources")
      }
      files += found
    }
    return files
  }

  /// Returns the Swift files in a folder, ordered by path. In a package only those in `Sources` count, because
  /// manifest, tests and tools are not part of the plugin.
  private func swiftFiles(below folder: String) -> [String] {
    var root = URL(fileURLWithPath: folder, isDirectory: true)
    if FileManager.default.fileExists(atPath: root.appendingPathComponent("Package.swift").path) {
      root.appendPathComponent("Sources", isDirectory: true)
    }
    let entries = FileManager.default.enumerator(
      at: root, includingPropertiesForKeys: nil, options: [.skipsHiddenFiles])
    var files: [String] = []
    while let file = entries?.nextObject() as? URL {
      if file.pathExtension == "swift" { files.append(file.path) }
    }
    return files.sorted()
  }

  // MARK: - Compiler

  private func compilerPath() throws(InstarError) -> String {
    let folders = ProcessInfo.processInfo.environment["PATH"] ?? ""
    for folder in folders.split(separator: ":") {
      let candidate = "\(folder)/swiftc"
      if access(candidate, X_OK) == 0 { return FilePath.absolute(candidate) }
    }
    throw failure(
      "no 'swiftc' in PATH",
      next: "install Swift 6.3 or later (https://www.swift.org/install/linux/), or add it to PATH")
  }

  private func arguments(files: [String], output: String) -> [String] {
    let libraryFolder = URL(fileURLWithPath: installation.library).deletingLastPathComponent().path
    let module = moduleName ?? defaultModuleName
    // Models of a package may be `package`, which needs a package.
    var arguments = [
      "-emit-library", "-parse-as-library", "-module-name", module, "-package-name", module,
    ]
    arguments += ["-swift-version", languageMode.rawValue]
    if isatty(STDERR_FILENO) == 1 { arguments.append("-color-diagnostics") }
    // A file that imports Foundation only also needs the SDK: `#Predicate` of other predicates is the SDK's.
    arguments += ["-Xfrontend", "-import-module", "-Xfrontend", "Instar"]
    // One job for all files: it expands each macro, and prints its warnings, once.
    arguments.append("-wmo")
    arguments += isDebugBuild ? Self.debugOptions : ["-O"]
    arguments += ["-I", installation.modulesFolder]
    arguments += ["-load-plugin-executable", "\(installation.macroExecutable)#InstarMacros"]
    arguments += ["-L", libraryFolder, "-lInstar"]
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
