import Foundation
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire

/// Reads the schemas of stores through a keeper, and those of plugins through a worker.
struct SchemaReader {
  /// The plan to use of a plugin with several.
  var plan: String?

  /// - Throws: `missingStore`, `missingPlugin`, `missingFile`, `notAStore`, `notAPlugin`, `notASchema` or
  ///   `unknownVersion`.
  func read(_ subject: SchemaArgument) async throws(InstarError) -> LoadedSchema {
    let path = FilePath.absolute(subject.path)
    switch subject.kind {
    case .store:
      return LoadedSchema(try await Supervisor().schema(of: path))
    case .document:
      return LoadedSchema(try document(path), kind: .document, path: path)
    case .plugin(let version):
      let all = try await versions(of: path)
      guard
        let document = version == nil
          ? all.last : all.first(where: { $0.schema.version == version })
      else {
        throw unknown(version, of: path, known: all)
      }
      return LoadedSchema(document, kind: .plugin, path: path)
    }
  }

  /// Returns all versions of a plugin's plan, oldest first.
  func versions(of path: String) async throws(InstarError) -> [SchemaDocument] {
    let plugin = try FilePath.ofPlugin(path)
    // Two keepers are asked: a computed default, such as UUID(), differs between them.
    let (once, again) = (try await plan(of: plugin), try await plan(of: plugin))
    return zip(once.versions, again.versions).map {
      SchemaDocument($0, plan: once.name, again: $1)
    }
  }

  /// The error for a version that a plugin's plan does not contain.
  func unknown(
    _ version: Schema.Version?, of plugin: String, known: [SchemaDocument]
  ) -> InstarError {
    let list = known.map(\.schema.version.description).joined(separator: ", ")
    return InstarError(
      .unknownVersion, "cannot find version \(version?.description ?? "") in plugin '\(plugin)'",
      cause: "the plan has the versions \(list)",
      next: "run: instarctl schema show '\(plugin)@\(known.last?.schema.version ?? .init(1, 0, 0))'"
    )
  }

  private func plan(of plugin: String) async throws(InstarError) -> PlanManifest {
    let plans = try await Supervisor().plans(of: plugin)
    let what = "cannot choose a plan of plugin '\(plugin)'"
    let names = plans.map(\.name).joined(separator: ", ")
    guard let chosen = plan == nil ? plans.first : plans.first(where: { $0.name == plan }) else {
      throw InstarError(
        .noPlan, what,
        cause: "the plugin has \(plan.map { "no plan '\($0)'; it has " } ?? "")"
          + (names.isEmpty ? "no plan" : names),
        next: names.isEmpty
          ? "add '#InstarPlugin(NameOfYourPlan.self)' to its sources and build it again"
          : "run: instarctl plugin inspect '\(plugin)'")
    }
    guard plan != nil || plans.count == 1 else {
      throw InstarError(
        .ambiguousPlan, what, cause: "the plugin has several plans: \(names)",
        next: "choose one: --plan \(chosen.name)")
    }
    return chosen
  }

  /// Reads all files of a folder that `schema export` wrote, in the order of their names.
  ///
  /// - Throws: `missingFile` if there is none, so that a wrong folder is not treated as one without changes;
  ///   `notASchema`.
  static func documents(in folder: String) throws(InstarError) -> [SchemaDocument] {
    let names = try FolderNames.all(in: folder, suffix: ".json").sorted()
    guard !names.isEmpty else {
      throw InstarError(
        .missingFile, "cannot read the schemas in '\(folder)'",
        cause: "the folder contains no .json file",
        next: "write the files with: instarctl schema export PLUGIN.so -o '\(folder)'")
    }
    return try names.map { name throws(InstarError) in
      try SchemaReader().document("\(folder)/\(name)")
    }
  }

  private func document(_ path: String) throws(InstarError) -> SchemaDocument {
    let what = "cannot read schema '\(path)'"
    guard FilePath.exists(path) else {
      throw InstarError(
        .missingFile, what, cause: "the file does not exist",
        next: "check the path, or write the file with: instarctl schema export PLUGIN.so -o FOLDER")
    }
    try FilePath.requireReadable(path, .notASchema, what)
    let content: Data
    do {
      content = try Data(contentsOf: URL(fileURLWithPath: path))
    } catch {
      throw InstarError(
        .notASchema, what, cause: InstarError.reason(of: error), next: FilePath.advice(on: path))
    }
    return try SchemaDocument.read(content, path: path)
  }
}
