package import GRDB
internal import InstarSchema
package import InstarStore

/// Writes the new version into a verified clone.
///
/// A store of the format `coredata` gets new metadata, and the highest keys in the entity list. A plain store gets its
/// version where the plan keeps it.
package struct StoreStamp {
  private let layout: any StoreLayout
  private let version: Schema.Version
  private let source: VersionSource
  /// `nil` in a format without metadata.
  private let metadata: CoreDataMetadata?

  /// - Parameters:
  ///   - earlier: The metadata of the store before the run, not of the clone: its identifier and the app's own keys are
  ///     kept. `nil` where the store had no readable metadata.
  ///   - uuid: The identifier of a store without readable metadata.
  ///   - reference: The reference store of the version; `nil` where the plugin has none.
  package init(
    earlier: CoreDataMetadata?, uuid: String?, path: MigrationPath, layout: any StoreLayout,
    fingerprint: String, reference: ReferenceStore?
  ) {
    self.layout = layout
    version = path.to
    source = path.versionSource
    guard var metadata = layout.metadata(newStoreFor: path.last) else {
      self.metadata = nil
      return
    }
    if let earlier {
      metadata = earlier
    } else if let uuid, !uuid.isEmpty {
      metadata.uuid = uuid
    }
    if let reference {
      metadata.stamp(
        like: reference.metadata, modelCache: reference.modelCache, version: path.to,
        fingerprint: fingerprint)
    } else {
      metadata.stamp(
        schema: path.last, unchangedEntities: path.unchangedEntities, fingerprint: fingerprint,
        keepsModelCache: path.first.entities == path.last.entities)
    }
    self.metadata = metadata
  }

  /// Whether the store will not hold its schema, neither in an archived model nor in its metadata.
  package var lacksSchema: Bool { metadata?.lacksSchema ?? false }

  package func write(_ db: Database) throws {
    try db.inTransaction(.immediate) {
      try layout.stamp(version, at: source, metadata: metadata, db)
      return .commit
    }
  }
}
