package import GRDB
internal import InstarSchema
package import InstarStore

/// Writes into a verified clone what it is now: its version in the metadata, its highest keys in
/// the entity list.
package struct StoreStamp {
  private let metadata: CoreDataMetadata
  private let layout: CoreDataLayout

  /// - Parameters:
  ///   - earlier: The metadata the store had before the run, not what the clone holds now:
  ///     identifier and app's own keys are kept. `nil` where the store had none that can be read.
  ///   - uuid: The identifier of a store without readable metadata.
  ///   - reference: What Apple's frameworks know the version by; `nil` where that is not known.
  package init(
    earlier: CoreDataMetadata?, uuid: String?, path: MigrationPath, layout: CoreDataLayout,
    fingerprint: String, reference: ReferenceStore?
  ) {
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
        schema: path.last, unchangedEntities: path.unchangedEntities, fingerprint: fingerprint)
    }
    self.metadata = metadata
    self.layout = layout
  }

  package func write(_ db: Database) throws {
    try db.inTransaction(.immediate) {
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
