import Foundation
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire

/// Reads the schemas of stores through a keeper, and those of plugins through a worker.
struct SchemaReader {
  private let installation: Installation
  /// The plan to use of a plugin with several.
  private let plan: String?

  /// - Throws: `incompleteInstallation`.
  init(plan: String? = nil) throws(InstarError) {
    installation = try .locate()
    self.plan = plan
  }

  /// - Throws: `missingStore`, `missingPlugin`, `notAStore`, `notAPlugin`, `notASchema` or `unknownVersion`.
  func read(_ subject: SchemaArgument) async throws(InstarError) -> LoadedSchema {
    let path = FilePath.absolute(subject.path)
    switch subject.kind {
    case .store:
      return LoadedSchema(try await report(of: path))
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

  /// Returns the schema that a store itself contains.
  func report(of store: String) async throws(InstarError) -> SchemaReport {
    let supervisor = Supervisor(installation: installation, stateFolder: nil)
    guard let answer = try await supervisor.schemas(of: [store]).first else {
      throw InstarError(
        .internalError, "cannot read the schema of '\(store)'", cause: "the keeper sent no answer")
    }
    return try answer.result.get()
  }

  /// Returns all versions of a plugin's plan, oldest first.
  func versions(of path: String) async throws(InstarError) -> [SchemaDocument] {
    let plugin = try FilePath.ofPlugin(path)
    // Two workers are asked: a computed default, such as UUID(), differs between them.
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
    let supervisor = Supervisor(installation: installation, stateFolder: nil)
    let plans = try await supervisor.plans(of: plugin)
    let what = "cannot choose a plan of plugin '\(plugin)'"
    let names = plans.map(\.name).joined(separator: ", ")
    if let plan {
      guard let named = plans.first(where: { $0.name == plan }) else {
        throw InstarError(
          .noPlan, what,
          cause: "the plugin has no plan '\(plan)'; it has \(names.isEmpty ? "none" : names)",
          next: "run: instarctl plugin inspect '\(plugin)'")
      }
      return named
    }
    guard let first = plans.first else {
      throw InstarError(
        .noPlan, what, cause: "the plugin has no plan",
        next: "add '#InstarPlugin(NameOfYourPlan.self)' to its sources and build it again")
    }
    guard plans.count == 1 else {
      throw InstarError(
        .ambiguousPlan, what, cause: "the plugin has several plans: \(names)",
        next: "choose one: --plan \(first.name)")
    }
    return first
  }

  private func document(_ path: String) throws(InstarError) -> SchemaDocument {
    let what = "cannot read schema '\(path)'"
    guard FilePath.exists(path) else {
      throw InstarError(
        .missingStore, what, cause: "the file does not exist",
        next: "check the path, or write the file with: instarctl schema export PLUGIN.so -o FOLDER")
    }
    let content: Data
    do {
      content = try Data(contentsOf: URL(fileURLWithPath: path))
    } catch {
      throw InstarError(.notASchema, what, cause: error.localizedDescription)
    }
    return try SchemaDocument.read(content, path: path)
  }
}
