internal import GRDB
internal import InstarSchema
internal import InstarStore
internal import InstarWire

extension StoreInspection {
  /// Rows that break a rule of their own version: they have no value of a property that both versions require. The
  /// column of an app's own table may allow NULL although the model requires the property.
  func missingRequiredValues(_ openPolicy: OpenPolicy) throws(InstarError) -> [Finding] {
    let layout = try layout(of: path.first)
    let kept = try path.keptRequirements(self.layout(of: path.last))
    let required = layout.requiredColumns.map { table in
      var table = table
      table.columns.removeAll { !kept.contains("\(table.owner).\($0.name)") }
      return table
    }
    guard required.contains(where: { !$0.columns.isEmpty }) else { return [] }
    let file = try openPolicy.probeFile(paths.store)
    return try StoreReader.withReadOnlyStore(file.path) { db in
      try layout.missingValues(db, in: required).map { missing in
        Finding(
          severity: .warning, code: .missingRequiredValues,
          message: missing.rows.sentence(
            of: missing.owner,
            have: "no value of '\(missing.property)', "
              + "which versions \(path.from) and \(path.to) require")
            + MigrationPath.unlessChanged,
          fix: MissingValues.cure, rows: missing.rows)
      }
    }
  }
}

extension MigrationPath {
  /// The properties of the first version, as "Note.title", that each version requires.
  fileprivate func keptRequirements(_ layout: any StoreLayout) -> Set<String> {
    Set(
      layout.requiredColumns.flatMap { required in
        required.columns.compactMap { column in
          alwaysRequiredOrigin(of: required.owner, column.name)
        }
      })
  }

  /// Whether each version requires a property of the last one.
  func alwaysRequired(_ entity: String, _ property: String) -> Bool {
    alwaysRequiredOrigin(of: entity, property) != nil
  }

  /// Returns a property of the last version as the first one names it, "Note.title".
  ///
  /// - Returns: `nil` where a version does not require it, or has another type of it: a stage that changes either may
  ///   give rows an initial value.
  private func alwaysRequiredOrigin(of entity: String, _ property: String) -> String? {
    var (entity, property) = (entity, property)
    for difference in differences.reversed() {
      guard let mapping = difference.entities.first(where: { $0.new.name == entity }),
        let source = mapping.old, let name = mapping.sourceName(of: property),
        Self.requires(property, of: mapping.new, as: name, of: source)
      else { return nil }
      (entity, property) = (source.name, name)
    }
    return "\(entity).\(property)"
  }

  /// Whether both versions of an entity require a property, with the same type.
  private static func requires(
    _ property: String, of new: Schema.Entity, as name: String, of old: Schema.Entity
  ) -> Bool {
    let attributes = (
      old.attributes.first { $0.name == name }, new.attributes.first { $0.name == property }
    )
    if case (let before?, let after?) = attributes {
      return !before.isOptional && !after.isOptional && before.type == after.type
    }
    return old.relationships.contains { $0.name == name && !$0.isOptional }
      && new.relationships.contains { $0.name == property && !$0.isOptional }
  }
}
