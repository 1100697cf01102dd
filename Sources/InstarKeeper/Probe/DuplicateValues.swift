internal import InstarSchema
internal import InstarStore
internal import InstarWire

extension StoreInspection {
  /// Rows with equal values of attributes that become unique. They refuse a run, unless code of the plan runs before
  /// the stage that finds them again.
  ///
  /// - Parameter includesWarnings: Whether to read the rows that code may still change.
  func duplicateValues(
    _ openPolicy: OpenPolicy, includesWarnings: Bool
  ) throws(InstarError) -> [Finding] {
    let constraints = path.newConstraints.filter { includesWarnings || !$0.isCurable }
    guard !constraints.isEmpty else { return [] }
    let layouts = try layout(of: path.first).entityLayouts.keyed(by: \.name)
    let file = try openPolicy.probeFile(paths.store)
    return try StoreReader.withReadOnlyStore(file.path) { db in
      try constraints.compactMap { constraint -> Finding? in
        guard let entity = layouts[constraint.entity] else { return nil }
        let columns = constraint.attributes.compactMap { name in
          entity.attributes.first { $0.attribute.name == name }?.column.name
        }
        guard columns.count == constraint.attributes.count else { return nil }
        return try KeyedRows(ofTableOf: entity).repeated(db, columns).map(constraint.finding)
      }
    }
  }
}

extension MigrationPath {
  /// Attributes that become unique together, with names of the first version.
  fileprivate struct NewConstraint {
    var stage: StageManifest
    var entity: String
    var attributes: [String]
    /// Whether code can remove duplicates before the change of schema.
    var isCurable: Bool

    func finding(_ rows: AffectedRows) -> Finding {
      let names = attributes.map { "'\($0)'" }.joined(separator: ", ")
      let become = attributes.count == 1 ? "becomes" : "become"
      return Finding(
        severity: isCurable ? .warning : .error, code: .duplicateUniqueValues,
        message: rows.sentence(
          of: entity,
          have: "equal values of \(names), which \(become) unique in version \(stage.to)")
          + (isCurable ? MigrationPath.unlessChanged : ""),
        fix: isCurable
          ? "let willMigrate of this stage, or the code of an earlier one, remove the duplicates"
          : "make the stage from \(stage.from) to \(stage.to) custom, and remove the duplicates in willMigrate",
        rows: rows)
    }
  }

  /// Those of attributes that the first version has with the same type.
  fileprivate var newConstraints: [NewConstraint] {
    stages.indices.flatMap { index in
      differences[index].entities.flatMap { mapping in
        newConstraints(of: mapping, at: index)
      }
    }
  }

  private func newConstraints(
    of mapping: SchemaDifference.EntityMapping, at index: Int
  ) -> [NewConstraint] {
    guard let old = mapping.old else { return [] }
    return mapping.new.uniquenessConstraints.compactMap { group in
      let before = group.compactMap(mapping.sourceName)
      guard before.count == group.count, !old.uniquenessConstraints.contains(before) else {
        return nil
      }
      var entity = old.name
      var attributes: [String] = []
      for name in group {
        guard let origin = origin(of: mapping.new.name, name, before: index),
          let property = origin.property,
          let type = attributeType(property, of: origin.entity, in: first),
          type == attributeType(name, of: mapping.new.name, in: schemas[index + 1])
        else { return nil }
        entity = origin.entity
        attributes.append(property)
      }
      return NewConstraint(
        stage: stages[index], entity: entity, attributes: attributes,
        isCurable: runsCode(before: index))
    }
  }

  private func attributeType(
    _ attribute: String, of entity: String, in schema: Schema
  ) -> Schema.AttributeType? {
    schema.entitiesByName[entity]?.attributes.first { $0.name == attribute }?.type
  }
}
