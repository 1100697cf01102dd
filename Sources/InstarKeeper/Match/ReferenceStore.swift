internal import Foundation
internal import GRDB
internal import InstarSchema
internal import InstarStore

/// What an empty store of one version, written by the app itself, tells of that version: what only Apple's frameworks can
/// compute.
///
/// Beside the plugin `Notes.so` they are the files of the folder `Notes.referencestores`, each named by its version:
/// `2.0.0.sqlite`. A store that is migrated to a version gets from it what Apple's frameworks know that version by.
package struct ReferenceStore {
  let metadata: CoreDataMetadata
  /// The archived model, packed as stores have it; `nil` where the reference store has none.
  let modelCache: Data?
  let structure: StoreStructure

  /// Where the reference stores of a plugin are.
  static func folder(of plugin: String) -> String {
    (plugin.hasSuffix(".so") ? String(plugin.dropLast(3)) : plugin) + ".referencestores"
  }

  /// All of a plugin, by version; none where it has no such folder.
  ///
  /// - Throws: `invalidPlan` for one that cannot be read.
  static func all(of plugin: String) throws(InstarError) -> [Schema.Version: ReferenceStore] {
    let folder = folder(of: plugin)
    var stores: [Schema.Version: ReferenceStore] = [:]
    for name in try names(in: folder) where name.hasSuffix(".sqlite") {
      let path = "\(folder)/\(name)"
      guard let version = Schema.Version(String(name.dropLast(".sqlite".count))) else {
        throw unusable(path, "its name is no version; '2.0.0.sqlite' is one")
      }
      do {
        stores[version] = try StoreReader.withReadOnlyStore(path) { try ReferenceStore($0) }
      } catch {
        throw unusable(path, error.cause)
      }
    }
    return stores
  }

  private static func names(in folder: String) throws(InstarError) -> [String] {
    var status = stat()
    if stat(folder, &status) != 0, errno == ENOENT { return [] }
    do {
      return try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
    } catch {
      throw InstarError(
        .unreadableStore, "cannot read the reference stores in '\(folder)'",
        cause: error.localizedDescription,
        next: "make the folder readable for user \(geteuid()): chmod a+rx '\(folder)'")
    }
  }

  private init(_ db: Database) throws {
    metadata = try CoreDataMetadata.read(db)
    // Only one that can be read is handed on.
    modelCache =
      try CoreDataModel.read(db) == nil
      ? nil : Data.fetchOne(db, sql: "SELECT Z_CONTENT FROM Z_MODELCACHE LIMIT 1")
    structure = try StoreStructure.read(db, format: .coredata)
  }

  private static func unusable(_ path: String, _ cause: String) -> InstarError {
    InstarError(.invalidPlan, "cannot use reference store '\(path)'", cause: cause)
  }

  /// - Throws: `invalidPlan` where it is a store of another version than its name says.
  func requireVersion(_ layout: CoreDataLayout, _ version: Schema.Version) throws(InstarError) {
    let expected = layout.structure
    guard structure == expected else {
      throw InstarError(
        .invalidPlan, "cannot use the reference store of version \(version)",
        cause: "it is built otherwise than that version of the plan:\n"
          + structure.differences(from: expected).prefix(20).joined(separator: "\n"),
        next: "have the app of that version make it, or mend the plan's models")
    }
    guard Set(metadata.entityHashes.keys) == Set(layout.entities.map(\.name)) else {
      throw InstarError(
        .invalidPlan, "cannot use the reference store of version \(version)",
        cause: "it has hashes of other entities than that version of the plan")
    }
  }
}
