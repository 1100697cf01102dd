internal import Foundation
internal import GRDB
internal import InstarLinux
internal import InstarSchema
internal import InstarStore

/// An empty store of one version, written by the app itself, with the hashes that only Apple's frameworks can compute.
///
/// The reference stores of the plugin `Notes.so` are in the folder `Notes.referencestores` beside it, each named by its
/// version: `2.0.0.sqlite`. A store that is migrated to that version gets the hashes and the archived model.
package struct ReferenceStore {
  let metadata: CoreDataMetadata
  /// The archived model, compressed as in the store; `nil` where the reference store has none.
  let modelCache: Data?
  let structure: StoreStructure

  /// The folder with the reference stores of a plugin.
  static func folder(of plugin: String) -> String {
    (plugin.hasSuffix(".so") ? String(plugin.dropLast(3)) : plugin) + ".referencestores"
  }

  /// Reads the reference stores of a plugin, by version; empty where there is no folder.
  ///
  /// - Throws: `unreadableStore` where the folder cannot be read, `invalidPlan` for a store that cannot be used.
  static func all(of plugin: String) throws(InstarError) -> [Schema.Version: ReferenceStore] {
    let folder = folder(of: plugin)
    var stores: [Schema.Version: ReferenceStore] = [:]
    for name in try names(in: folder) {
      let path = "\(folder)/\(name)"
      guard let version = Schema.Version(String(name.dropLast(".sqlite".count))) else {
        throw unusable(path, "the file's name is not a version, such as '2.0.0.sqlite'")
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
    do throws(InstarError) {
      return try FolderNames.all(in: folder, suffix: ".sqlite").sorted()
    } catch {
      throw InstarError(
        .unreadableStore, "cannot read the reference stores in '\(folder)'",
        cause: "the folder '\(folder)' cannot be read: \(error.cause)",
        next:
          "make the folder readable for user \(ProcessIdentity.label(of: geteuid())): chmod a+rx '\(folder)'"
      )
    }
  }

  private init(_ db: Database) throws {
    metadata = try CoreDataMetadata.read(db)
    // An unreadable model is not written into other stores.
    modelCache =
      try CoreDataModel.read(db) == nil
      ? nil : Data.fetchOne(db, sql: "SELECT Z_CONTENT FROM Z_MODELCACHE LIMIT 1")
    structure = try StoreStructure.read(db, format: .coredata)
  }

  private static func unusable(_ path: String, _ cause: String) -> InstarError {
    InstarError(
      .invalidPlan, "cannot use a reference store",
      cause: "reference store '\(path)' is not usable: \(cause)",
      next:
        "replace the file with an empty store of that version that the app created, or remove it")
  }

  /// - Throws: `invalidPlan` where the store does not match the version in its name.
  func requireVersion(_ layout: any StoreLayout, _ version: Schema.Version) throws(InstarError) {
    let expected = layout.structure
    guard structure == expected else {
      throw InstarError(
        .invalidPlan, "cannot use the reference store of version \(version)",
        cause:
          "the structure of the reference store does not match version \(version) of the plan:\n"
          + structure.differences(from: expected).prefix(20).joined(separator: "\n"),
        next:
          "create the reference store with the app of that version, or correct the plan's models")
    }
    guard Set(metadata.entityHashes.keys) == Set(layout.entityLayouts.map(\.name)) else {
      throw InstarError(
        .invalidPlan, "cannot use the reference store of version \(version)",
        cause:
          "the entities of the reference store are not those of version \(version) of the plan",
        next:
          "create the reference store with the app of that version, or correct the plan's models")
    }
  }
}
