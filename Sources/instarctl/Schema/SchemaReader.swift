import Foundation
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire

/// Reads schemas: those of stores through a keeper, those of plugins through a worker.
struct SchemaReader {
  private let installation: Installation
  /// The plan that is meant, of a plugin with several.
  private let plan: String?

  /// - Throws: `incompleteInstallation`.
  init(plan: String? = nil) throws(InstarError) {
    installation = try .locate()
    self.plan = plan
  }

  /// - Throws: why the file cannot be read, is no store, plugin or document, or lacks the version.
  func read(_ subject: SchemaSubject) async throws(InstarError) -> FoundSchema {
    let path = FilePath.absolute(subject.path)
    switch subject.kind {
    case .store:
      return FoundSchema(try await report(of: path))
    case .document:
      return FoundSchema(try document(path), kind: .document, path: path)
    case .plugin(let version):
      let all = try await versions(of: path)
      guard
        let document = version == nil
          ? all.last : all.first(where: { $0.schema.version == version })
      else {
        throw unknown(version, of: path, known: all)
      }
      return FoundSchema(document, kind: .plugin, path: path)
    }
  }

  /// What a store itself tells of its schema.
  func report(of store: String) async throws(InstarError) -> SchemaReport {
    let supervisor = Supervisor(installation: installation, stateFolder: nil)
    guard let answer = try await supervisor.schemas(of: [store]).first else {
      throw InstarError(
        .internalError, "cannot read the schema of '\(store)'", cause: "nothing was answered")
    }
    return try answer.result.get()
  }

  /// All versions of a plugin's plan, oldest first.
  func versions(of path: String) async throws(InstarError) -> [SchemaDocument] {
    let plugin = try FilePath.ofPlugin(path)
    // Asked twice, of two workers: a default that is computed differs.
    let (once, again) = (try await plan(of: plugin), try await plan(of: plugin))
    return zip(once.versions, again.versions).map {
      SchemaDocument($0, plan: once.name, again: $1)
    }
  }

  /// Why a plugin's plan has nothing to show for a version.
  func unknown(
    _ version: Schema.Version?, of plugin: String, known: [SchemaDocument]
  ) -> InstarError {
    let list = known.map(\.schema.version.description).joined(separator: ", ")
    return InstarError(
      .unknownVersion, "cannot find version \(version?.description ?? "") in plugin '\(plugin)'",
      cause: "its plan has the versions \(list)", next: "name one of these")
  }

  private func plan(of plugin: String) async throws(InstarError) -> PlanManifest {
    let supervisor = Supervisor(installation: installation, stateFolder: nil)
    let plans = try await supervisor.plans(of: plugin)
    let what = "cannot choose a plan of plugin '\(plugin)'"
    let names = plans.map(\.name).joined(separator: ", ")
    if let plan {
      guard let named = plans.first(where: { $0.name == plan }) else {
        throw InstarError(
          .noPlan, what, cause: "it has no plan '\(plan)', but \(names.isEmpty ? "none" : names)")
      }
      return named
    }
    guard let first = plans.first else {
      throw InstarError(.noPlan, what, cause: "it has none")
    }
    guard plans.count == 1 else {
      throw InstarError(
        .ambiguousPlan, what, cause: "it has several: \(names)", next: "name one with --plan")
    }
    return first
  }

  private func document(_ path: String) throws(InstarError) -> SchemaDocument {
    let what = "cannot read schema '\(path)'"
    guard FilePath.exists(path) else {
      throw InstarError(.missingStore, what, cause: "there is no such file")
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
