package import GRDB
internal import InstarSchema
package import InstarStore

/// Writes into a verified clone what it is now: its version in the metadata, its highest keys in
/// the entity list; for a plain store its version where the plan says.
package struct StoreStamp {
  private let form: Form

  private enum Form {
    case coreData(CoreDataMetadata, CoreDataLayout)
    case plain(Schema.Version, VersionSource)
  }

  /// - Parameters:
  ///   - earlier: The metadata the store had before the run, not what the clone holds now:
  ///     identifier and app's own keys are kept. `nil` where the store had none that can be read.
  ///   - uuid: The identifier of a store without readable metadata.
  ///   - reference: What Apple's frameworks know the version by; `nil` where that is not known.
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

  /// Whether the store will not tell its schema: neither an archived model nor the metadata hold it.
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
      // A key that was handed out once is not handed out again: the mark never falls, and is above
      // all rows.
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
