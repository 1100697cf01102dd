package import GRDB
internal import InstarSchema
package import InstarStore

/// Writes the new version into a verified clone.
///
/// A store of the format `coredata` gets new metadata, and the highest keys in the entity list. A plain store gets its
/// version where the plan keeps it.
package struct StoreStamp {
  private let form: Form

  private enum Form {
    case coreData(CoreDataMetadata, CoreDataLayout)
    case plain(Schema.Version, VersionSource)
  }

  /// - Parameters:
  ///   - earlier: The metadata of the store before the run, not of the clone: its identifier and the app's own keys are
  ///     kept. `nil` where the store had no readable metadata.
  ///   - uuid: The identifier of a store without readable metadata.
  ///   - reference: The reference store of the version; `nil` where the plugin has none.
  package init(
    earlier: CoreDataMetadata?, uuid: String?, path: MigrationPath, layout: StoreLayout,
    fingerprint: String, reference: ReferenceStore?
  ) {
    guard case .coreData(let layout) = layout else {
      form = .plain(path.to, path.versionSource)
      return
    }
    var metadata: CoreDataMetadata
    if let earlier {
      metadata = earlier
    } else {
      metadata = CoreDataMetadata(newStoreFor: path.last)
      if let uuid, !uuid.isEmpty { metadata.uuid = uuid }
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
    form = .coreData(metadata, layout)
  }

  /// Whether the store will not hold its schema, neither in an archived model nor in its metadata.
  package var lacksSchema: Bool {
    guard case .coreData(let metadata, _) = form else { return false }
    return metadata.lacksSchema
  }

  package func write(_ db: Database) throws {
    try db.inTransaction(.immediate) {
      guard case .coreData(let metadata, let layout) = form else {
        if case .plain(let version, let source) = form {
          try PlainVersion.stamp(version, at: source, db)
        }
        return .commit
      }
      try metadata.write(db)
      // A key is never used twice: the highest key never falls, and is at least that of every row.
      for entity in layout.entities where entity.superNumber == 0 {
        try db.execute(
          sql: """
            UPDATE Z_PRIMARYKEY SET Z_MAX = (SELECT max(Z_PK) FROM \(entity.table))
            WHERE Z_ENT = ? AND coalesce(Z_MAX, 0) < (SELECT max(Z_PK) FROM \(entity.table))
            """, arguments: [entity.number])
      }
      return .commit
    }
  }
}
