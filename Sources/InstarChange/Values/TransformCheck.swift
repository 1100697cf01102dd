import InstarSchema
import InstarStore

/// Finds the columns of a transform, and refuses what the two versions of its stage do not allow.
struct TransformCheck {
  let stage: SchemaStage
  let difference: SchemaDifference

  func failure(_ cause: String, _ next: String) -> InstarError {
    InstarError(.invalidPlan, stage.what, cause: cause, next: next)
  }

  /// The entity in both versions.
  func layouts(
    of transform: EntityTransform
  ) throws(InstarError) -> (old: EntityLayout, new: EntityLayout, keepsKeys: Bool) {
    let pairs = stage.entityLayoutPairs(difference)
    guard let pair = pairs.first(where: { $0.new?.name == transform.new }), let new = pair.new,
      pair.old.name == transform.old,
      !stage.entitiesWithoutTable(difference).contains(transform.old)
    else {
      throw failure(
        "\(transform.new) of \(stage.to.schema.version) does not continue \(transform.old) of "
          + "\(stage.from.schema.version)",
        "name the two classes of one model in Transform(…)")
    }
    return (pair.old, new, pair.keepsKeys)
  }

  func target(
    of assignment: EntityTransform.Assignment, _ layout: EntityLayout, _ transform: EntityTransform
  ) throws(InstarError) -> (name: String, column: StoredColumn, isRequired: Bool) {
    let (name, found) = try stored(assignment.target, layout, "sets")
    let path = "\(transform.new).\(name)"
    if layout.primaryKey.contains(found.column.name)
      || layout.key.columns.contains(found.column.name)
    {
      throw failure(
        "\(path) is a part of the primary key, which identifies the rows",
        "change keys in a stage of their own")
    }
    if found.attribute.derivation != nil || found.column.isGenerated {
      throw failure("the store computes \(path) itself", "remove it from the transform")
    }
    if let derived = derived(from: name, of: transform.new) {
      throw failure(
        "\(derived) is derived from \(path)", "set \(path) in didMigrate of a custom stage")
    }
    if found.column.mayBeExternal {
      throw failure(
        "large values of \(path) are in files", "set \(path) in didMigrate of a custom stage")
    }
    if let owner = self.owner(of: name, at: transform.new, in: stage.to.schema),
      owner.name != transform.new,
      let declaring = difference.entities.first(where: { $0.new.name == owner.name }),
      keptSource(of: name, in: declaring) == nil
    {
      throw failure(
        "\(path) is inherited from \(owner.name), and new there",
        "set it in a Transform of \(owner.name)")
    }
    return (name, found.column, !found.attribute.isOptional)
  }

  /// Returns an attribute that triggers compute from a property: of the same model, or of one that reaches it through a
  /// relationship. No trigger fires in the change of schema.
  private func derived(from property: String, of name: String) -> String? {
    let schema = stage.to.schema
    let line = schema.line(of: name)
    func hasRows(_ other: String) -> Bool {
      line.contains(other) || schema.line(of: other).contains(name)
    }
    for entity in stage.to.layout.entityLayouts {
      let reaching = entity.relationships.map(\.relationship).filter { hasRows($0.destination) }
      for column in entity.attributes {
        guard let derivation = column.attribute.derivation else { continue }
        let names = SQLToken.names(in: derivation)
        guard names.contains(property.lowercased()) else { continue }
        if hasRows(entity.name)
          || reaching.contains(where: { names.contains($0.name.lowercased()) })
        {
          return "\(entity.name).\(column.attribute.name)"
        }
      }
    }
    return nil
  }

  func source(
    _ name: String?, of target: String, _ layout: EntityLayout, _ transform: EntityTransform
  ) throws(InstarError) -> StoredColumn {
    let (name, found) = try stored(name, layout, "reads")
    if found.column.mayBeExternal {
      throw failure(
        "large values of \(transform.old).\(name) are in files",
        "set \(transform.new).\(target) in didMigrate of a custom stage")
    }
    return found.column
  }

  private func stored(
    _ name: String?, _ layout: EntityLayout, _ verb: String
  ) throws(InstarError) -> (String, EntityLayout.AttributeColumn) {
    guard let name, let found = layout.attributes.first(where: { $0.attribute.name == name }) else {
      throw failure(
        "a transform \(verb) \(layout.name).\(name ?? "…"), which is not a stored property",
        "name a stored property that is not transient or a relationship, and has no value transformer"
      )
    }
    return (name, found)
  }

  /// The column of the new table that keeps the values of a property; `nil` if the change of schema removes, converts
  /// or moves them, or fills empty ones.
  func keptColumn(
    of property: String, _ old: EntityLayout, _ new: EntityLayout
  ) -> StoredColumn? {
    guard let owner = self.owner(of: property, at: old.name, in: stage.from.schema),
      difference.entitiesLosing(property, of: owner.name).isEmpty,
      let mapping = difference.entities.first(where: { $0.old?.name == owner.name }),
      let attribute = mapping.attributes.first(where: { $0.old?.name == property }),
      keptSource(of: attribute.new.name, in: mapping) != nil
    else { return nil }
    return new.attributes.first { $0.attribute.name == attribute.new.name }?.column
  }

  /// The entity, or the nearest one above it, that declares a property.
  private func owner(of property: String, at name: String, in schema: Schema) -> Schema.Entity? {
    var entity = schema.entity(named: name)
    while let current = entity, !current.declares(property) {
      entity = current.superentityName.flatMap { schema.entity(named: $0) }
    }
    return entity
  }

  /// The attribute of the version before whose values an attribute keeps as they are.
  private func keptSource(
    of property: String, in mapping: SchemaDifference.EntityMapping
  ) -> Schema.Attribute? {
    guard let attribute = mapping.attributes.first(where: { $0.new.name == property }),
      let before = attribute.old, mapping.old?.declares(before.name) == true,
      before.type.isStoredLike(attribute.new.type),
      !before.isOptional || attribute.new.isOptional
    else { return nil }
    return before
  }

  /// Whether SQLite needs the values of a required property when it makes the column: an ordinary table has no NOT NULL
  /// column that is empty for a while.
  func needsValueAtOnce(_ property: String, _ layout: EntityLayout) -> Bool {
    guard !stage.to.layout.makesConvertedColumnsEmpty,
      let mapping = difference.entities.first(where: { $0.new.name == layout.name })
    else { return false }
    return keptSource(of: property, in: mapping) == nil
  }
}
