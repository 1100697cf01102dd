import Foundation
import Glibc
import InstarLinux
import InstarSchema
import InstarWire

/// Makes the folder of a new plugin from its template.
///
/// It is made under a hidden name, where the plugin and the program of its sample store are also compiled, and gets its
/// name when all of that has succeeded.
struct PluginGenerator {
  var template: PluginTemplate
  /// The absolute path of the folder.
  var path: String
  var installation: Installation

  /// - Throws: `outputFailed` if the folder exists or cannot be written; `buildFailed`. Nothing is left then.
  func make() async throws(InstarError) {
    guard let compiler = SDKCompiler(installation) else {
      throw failure(SDKCompiler.missingCause, SDKCompiler.missingAdvice, code: .buildFailed)
    }
    let url = URL(fileURLWithPath: path)
    let unfinished =
      url.deletingLastPathComponent().path + "/.\(url.lastPathComponent).new-\(getpid())"
    // What cannot be removed is hidden, and of no harm.
    defer { try? FileManager.default.removeItem(atPath: unfinished) }
    try write(template.files, to: unfinished)
    try await makeSamples(in: unfinished, compiler)
    // Does not replace a folder with content.
    guard rename(unfinished, path) == 0 else {
      throw failure(String(cString: strerror(errno)), "run: ls -ld '\(path)'")
    }
  }

  private func write(_ files: [String: String], to folder: String) throws(InstarError) {
    for (name, text) in files.sorted(by: { $0.key < $1.key }) {
      let file = URL(fileURLWithPath: "\(folder)/\(name)")
      do {
        try FileManager.default.createDirectory(
          at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: file)
      } catch {
        throw failure(
          InstarError.reason(of: error),
          InstarError.adviceOnWriting(
            in: path.parentFolder, InstarError.number(of: error)))
      }
    }
  }

  /// Builds the plugin, exports the released versions, and makes the sample store and the snapshot of the statements.
  private func makeSamples(in folder: String, _ compiler: SDKCompiler) async throws(InstarError) {
    let scratch = "\(folder)/.build"
    let program = "\(scratch)/MakeSamples.swift"
    let store = URL(fileURLWithPath: template.samplePath).deletingLastPathComponent().path
    try write([".build/MakeSamples.swift": template.sampleProgram], to: folder)
    do {
      try FileManager.default.createDirectory(
        atPath: "\(folder)/Stores", withIntermediateDirectories: true)
    } catch {
      throw failure(InstarError.reason(of: error), "run: ls -ld '\(store)'")
    }
    let sources = try SourceFiles.files(of: [folder]) { failure($0, $1) }
    let builder = ProgramBuilder(
      compiler: compiler, module: template.name, languageMode: .swift5, folder: scratch,
      failure: { failure($0, $1, code: .buildFailed) })
    try builder.buildModule(sources)
    let made = try builder.buildProgram("MakeSamples", [program])
    let process = try ChildProcess.start(
      executable: made, arguments: [folder], output: .captured(limitBytes: 1 << 20))
    let termination = try process.wait()
    guard termination == .exited(0) else {
      Console.pass(process.capturedOutput)
      throw failure(
        "the program that makes the sample store \(termination?.description ?? "did not end")",
        "report this message as a defect of Instar", code: .internalError)
    }
    let plugin = "\(scratch)/\(template.name).so"
    _ = try await PluginBuilder(
      installation: installation, sources: [folder], output: plugin, isDebugBuild: false,
      languageMode: .swift5, moduleName: template.name
    ).build()
    let documents = try await SchemaReader(plan: template.planName).versions(of: plugin)
    for document in documents.dropLast() {
      let name = "Schemas/\(document.plan)-\(document.schema.version).json"
      try write([name: try document.text], to: folder)
    }
    do {
      try FileManager.default.removeItem(atPath: scratch)
    } catch {
      throw failure(InstarError.reason(of: error), "run: ls -ld '\(folder)'")
    }
  }

  private func failure(
    _ cause: String, _ next: String?, code: InstarError.Code = .outputFailed
  ) -> InstarError {
    InstarError(code, "cannot make plugin '\(path)'", cause: cause, next: next)
  }
}
