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
  private let metadata: CoreDataMetadata.Encoded?

  /// - Parameters:
  ///   - earlier: The metadata of the store before the run, not of the clone: its identifier and the app's own keys are
  ///     kept. `nil` where the store had no readable metadata.
  ///   - uuid: The identifier of a store without readable metadata.
  ///   - reference: The reference store of the path's last version; `nil` where the plugin has none.
  /// - Throws: An error where a value of the app has no place in a property list.
  package init(
    earlier: CoreDataMetadata?, uuid: String?, path: MigrationPath, layout: any StoreLayout,
    fingerprint: String, reference: ReferenceStore?
  ) throws {
    self.layout = layout
    version = path.to
    source = path.versionSource
    func stamped(_ metadata: CoreDataMetadata) throws -> CoreDataMetadata.Encoded {
      var metadata = metadata
      if let reference {
        metadata.stamp(
          like: reference.metadata, modelCache: reference.modelCache, version: path.to,
          fingerprint: fingerprint)
      } else {
        metadata.stamp(
          schema: path.last, unchangedEntities: path.unchangedEntities, fingerprint: fingerprint,
          keepsModelCache: path.first.entities == path.last.entities)
      }
      return try metadata.encoded()
    }
    if let earlier {
      let key = earlier.cacheKey(fingerprint)
      var metadata = try path.stampedMetadata.value(of: key) { try stamped(earlier) }
      metadata.uuid = earlier.uuid
      self.metadata = metadata
    } else if var new = layout.metadata(newStoreFor: path.last) {
      if let uuid, !uuid.isEmpty { new.uuid = uuid }
      metadata = try stamped(new)
    } else {
      metadata = nil
    }
  }

  /// Whether the store will not hold its schema, neither in an archived model nor in its metadata.
  package var lacksSchema: Bool { metadata?.lacksSchema ?? false }

  package func write(_ db: Database) throws {
    try db.inTransaction(.immediate) {
      try apply(db)
      return .commit
    }
  }

  /// Writes the version in a transaction of the caller.
  func apply(_ db: Database) throws {
    try layout.stamp(version, at: source, metadata: metadata, db)
  }
}

extension CoreDataMetadata {
  /// What the stamped property list follows from, in one path; `nil` for a list that is too large to be kept.
  fileprivate func cacheKey(_ fingerprint: String) -> [UInt8]? {
    guard let readBytes, readBytes.count <= Self.knownLimitBytes else { return nil }
    return Array(readBytes) + fingerprint.utf8
  }
}
