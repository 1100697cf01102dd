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
  /// The properties of the first version, as "Note.title", that this version and the last one require.
  fileprivate func keptRequirements(_ layout: any StoreLayout) -> Set<String> {
    Set(
      layout.requiredColumns.flatMap { required in
        required.columns.compactMap { column in
          origin(of: required.owner, column.name, before: differences.count - 1).flatMap { origin in
            origin.property.map { "\(origin.entity).\($0)" }
          }
        }
      })
  }

  /// Whether the first version requires a property of the last one too.
  func alwaysRequired(_ entity: String, _ property: String) -> Bool {
    guard let origin = origin(of: entity, property, before: differences.count - 1),
      let source = first.entity(named: origin.entity)
    else { return false }
    return source.attributes.contains { $0.name == origin.property && !$0.isOptional }
      || source.relationships.contains { $0.name == origin.property && !$0.isOptional }
  }
}
