internal import GRDB
internal import InstarSchema
internal import InstarStore
internal import InstarWire

extension StoreInspection {
  /// Values that the types of the last version may not read. The worker reads them all at the end of a run; values of
  /// an enum can be counted without the plugin's code.
  func readingFindings(_ openPolicy: OpenPolicy) throws(InstarError) -> [Finding] {
    let changes = path.readingChanges
    guard !changes.isEmpty else { return [] }
    let layout = try layout(of: path.first)
    let file = try openPolicy.probeFile(paths.store)
    let properties = path.attributePaths
    return try StoreReader.withReadOnlyStore(file.path) { db in
      try changes.compactMap { change in
        guard let raw = change.after.rawValues,
          let property = properties.first(where: { $0.isStored(as: change, in: layout) })
        else { return finding(change) }
        return try db.rows(
          with: property, in: layout,
          where: { column in
            "\(column) NOT IN (\(raw.map { _ in "?" }.joined(separator: ", ")))"
          }, arguments: StatementArguments(raw.map(\.databaseValue))
        )
        .map { finding($0, of: property, change) }
      }
    }
  }

  private func finding(_ change: SchemaDifference.ReadingChange) -> Finding {
    Finding(
      severity: .note,
      message:
        "version \(path.to) \(change.sentence): the run reads all of them, and fails if "
        + "the new type cannot read one of them")
  }

  private func finding(
    _ rows: AffectedRows, of property: PropertyPath,
    _ change: SchemaDifference.ReadingChange
  ) -> Finding {
    Finding(
      severity: .warning, code: .missingRequiredValues,
      message:
        "version \(path.to) may be unable to read \(rows.count) values of \(property.title) (\(rows.text)); "
        + "it lists \(change.after.unwrapped.text): the run fails unless the plan's code changes these values "
        + "or the type accepts them",
      fix:
        "let willMigrate of a custom stage write values that version \(path.to) reads, or add these to "
        + "the type", rows: rows)
  }
}

extension PropertyPath {
  /// Whether the first version stores the values that another type reads at the end, in a column of their own and as
  /// models have them.
  fileprivate func isStored(
    as change: SchemaDifference.ReadingChange, in layout: any StoreLayout
  ) -> Bool {
    guard isKept, types.count == 1, types[0] != .codable,
      names.last?.contains(where: { $0 == (change.entity, change.property) }) == true,
      let entity = layout.entityLayouts.first(where: { $0.name == origin.entity }),
      let column = entity.attributes.first(where: { $0.attribute.name == origin.property })?.column
    else { return false }
    return column.encoding == nil
  }
}
