import Foundation
import Glibc
import InstarLinux
import InstarSchema
import InstarSupervisor

/// Compiles Swift sources to a plugin with the `swiftc` in PATH.
struct PluginBuilder {
  var installation: Installation
  /// Files, and folders to look for files in.
  var sources: [String]
  /// The plugin's absolute path.
  var output: String
  var isDebugBuild: Bool

  /// Builds beside the output, inspects the plugin, and only then gives it its name: whoever watches the folder never
  /// meets half a plugin or one with an invalid plan, and a plugin that was there stays if this fails.
  func build() async throws(InstarError) -> BuiltPlugin {
    let files = try sourceFiles()
    let compiler = try compilerPath()
    let outputURL = URL(fileURLWithPath: output)
    let folder = outputURL.deletingLastPathComponent()
    guard FileManager.default.fileExists(atPath: folder.path) else {
      throw failure("there is no folder '\(folder.path)'")
    }
    let unfinished =
      folder.appendingPathComponent(".\(outputURL.lastPathComponent).building-\(getpid())").path
    defer { unlink(unfinished) }

    let compilation = try ChildProcess.start(
      executable: compiler, arguments: arguments(files: files, output: unfinished))
    // In a process group of its own the compiler does not hear of a Ctrl-C.
    let supervisor = Supervisor(installation: installation, stateFolder: nil)
    let interruption = Interruption {
      compilation.kill()
      supervisor.cancel()
    }
    let termination = try compilation.wait()
    if interruption.hasHappened {
      throw failure("interrupted")
    }
    guard termination == .exited(0) else {
      throw failure(
        "swiftc \(termination?.description ?? "did not end")",
        next: "mend what the compiler reports above, and build again")
    }

    let note: PluginNote
    do {
      note = try PluginNote.read(path: unfinished)
    } catch {
      throw failure(
        "the sources name no migration plan as a plugin's",
        next: "write '#InstarPlugin(NameOfYourPlan.self)' at the end of a source file")
    }
    do {
      _ = try await supervisor.plans(of: unfinished)
    } catch {
      if interruption.hasHappened { throw failure("interrupted") }
      throw failure(
        error.cause.replacing(unfinished, with: output), code: error.code, next: error.next)
    }
    try DurableFile.synchronizeFile(unfinished)
    guard rename(unfinished, output) == 0 else {
      throw failure("cannot give it its name: \(String(cString: strerror(errno)))")
    }
    return BuiltPlugin(plugin: output, note: note, isDebugBuild: isDebugBuild)
  }

  private func failure(
    _ cause: String, code: InstarError.Code = .buildFailed, next: String? = nil
  ) -> InstarError {
    InstarError(code, "cannot build plugin '\(output)'", cause: cause, next: next)
  }

  // MARK: - What is compiled

  private func sourceFiles() throws(InstarError) -> [String] {
    var files: [String] = []
    for source in sources {
      let path = FilePath.absolute(source)
      var isFolder: ObjCBool = false
      guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) else {
        throw failure("there is no source '\(source)'")
      }
      guard isFolder.boolValue else {
        files.append(path)
        continue
      }
      let found = swiftFiles(below: path)
      guard !found.isEmpty else {
        throw failure("there is no Swift file in folder '\(source)'")
      }
      files += found
    }
    return files
  }

  /// The Swift files in a folder, ordered by path. Of a package only those in its `Sources` count:
  /// its manifest, tests and tools are not part of the plugin.
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

  // MARK: - How

  private func compilerPath() throws(InstarError) -> String {
    let folders = ProcessInfo.processInfo.environment["PATH"] ?? ""
    for folder in folders.split(separator: ":") {
      let candidate = "\(folder)/swiftc"
      if access(candidate, X_OK) == 0 { return FilePath.absolute(candidate) }
    }
    throw failure(
      "there is no 'swiftc' in PATH",
      next: "install Swift 6.3 or later (https://www.swift.org/install/linux/), or add it to PATH")
  }

  private func arguments(files: [String], output: String) -> [String] {
    let libraryFolder = URL(fileURLWithPath: installation.library).deletingLastPathComponent().path
    var arguments = ["-emit-library", "-parse-as-library", "-module-name", moduleName]
    // SwiftData's own sources are written for this mode: `static var versionIdentifier = …` is an
    // error in the next one.
    arguments += ["-swift-version", "5"]
    arguments += isDebugBuild ? ["-Onone", "-g"] : ["-O", "-wmo"]
    arguments += ["-I", installation.modulesFolder]
    arguments += ["-load-plugin-executable", "\(installation.macroExecutable)#InstarMacros"]
    arguments += ["-L", libraryFolder, "-lInstar"]
    // The worker has loaded libInstar.so and the Swift runtime before it loads a plugin: their names
    // are enough, and a search path of the building machine has no business in the plugin.
    arguments += ["-no-toolchain-stdlib-rpath", "-Xlinker", "-z", "-Xlinker", "defs"]
    return arguments + ["-o", output] + files
  }

  /// The plugin's file name as a name that Swift accepts and that is no other module's.
  private var moduleName: String {
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

/// What `plugin build` made.
struct BuiltPlugin: Answer {
  var plugin: String
  var note: PluginNote
  var isDebugBuild: Bool

  private enum CodingKeys: String, CodingKey {
    case plugin, abi, swiftVersion, planNames, debug
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(plugin, forKey: .plugin)
    try container.encode(note.abi, forKey: .abi)
    try container.encode(note.swiftVersion, forKey: .swiftVersion)
    try container.encode(note.planNames, forKey: .planNames)
    try container.encode(isDebugBuild, forKey: .debug)
  }

  var lines: [ConsoleLine] { ["\(plugin)", "  \(note.line)"] }
}
