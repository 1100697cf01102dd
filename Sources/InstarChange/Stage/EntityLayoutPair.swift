package import InstarSchema
package import InstarStore

/// An entity before and after a stage, and whether references to its rows by key stay valid.
package struct EntityLayoutPair {
  package let old: EntityLayout
  /// `nil` where the entity is removed.
  package let new: EntityLayout?
  /// Whether each row keeps its key: its rowid, whatever its name, or the values of its primary key in a table
  /// without rowid.
  package let keepsKeys: Bool
}

extension SchemaStage {
  /// Returns each entity of the old version with what the stage makes of it.
  package func entityLayoutPairs(_ difference: SchemaDifference) -> [EntityLayoutPair] {
    func byName(_ layout: any StoreLayout) -> [String: EntityLayout] {
      layout.entityLayouts.keyed(by: \.name)
    }
    let (olds, news) = (byName(from.layout), byName(to.layout))
    let kept = difference.entities.compactMap { mapping -> EntityLayoutPair? in
      guard let old = mapping.old.flatMap({ olds[$0.name] }), let new = news[mapping.new.name]
      else { return nil }
      let keepsKeys =
        from.layout.hasPermanentKeys || mapping.keepsKeys(from: old.key, to: new.key)
      return EntityLayoutPair(old: old, new: new, keepsKeys: keepsKeys)
    }
    let removed = difference.removedEntities.compactMap { olds[$0.name] }
    return kept + removed.map { EntityLayoutPair(old: $0, new: nil, keepsKeys: false) }
  }
}

extension SchemaDifference.EntityMapping {
  fileprivate func keepsKeys(from oldKey: RowKey, to newKey: RowKey) -> Bool {
    guard oldKey.isRowID == newKey.isRowID else { return false }
    // A rebuild copies rowids; a column that becomes the rowid has values of its own.
    if oldKey.isHidden || newKey.isHidden { return newKey.isHidden }
    guard let old else { return false }
    let sources = new.keyAttributes.map { key in
      attributes.first { $0.new.name == key.name && $0.old?.type == key.type }?.old?.name
    }
    let references = new.keyReferences.map { key in
      relationships.first { $0.new.name == key.name }?.old?.name
    }
    return sources == old.keyAttributes.map { Optional($0.name) }
      && references == old.keyReferences.map { Optional($0.name) }
  }
}

extension Schema.Entity {
  /// The relationships that are a part of the primary key.
  fileprivate var keyReferences: [Schema.Relationship] {
    relationships.filter { $0.column?.isPrimaryKey == true }
  }
}
