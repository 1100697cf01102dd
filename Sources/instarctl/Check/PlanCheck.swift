import InstarSchema
import InstarSource
import InstarWire

/// Checks one plan by its manifest: what it loses, leaves out, or leaves to Instar.
struct PlanCheck {
  var plan: PlanManifest
  /// The path of the plugin.
  var plugin: String
  /// The exported schemas of released versions.
  var released: [SchemaDocument] = []

  /// The findings, in the order of the plan's versions.
  var findings: [Finding] {
    plan.notes.map { finding(.warning, nil, $0) } + releaseFindings + versionFindings
      + arrayFindings + lossFindings
      + plan.stages.flatMap(findings(on:))
  }

  /// The findings on released plans that a plugin does not have: `PlanCheck` of its own plans says nothing about them.
  ///
  /// - Parameter released: The exported schemas of released versions.
  static func findings(onReleased released: [SchemaDocument], without plans: [PlanManifest])
    -> [Finding]
  {
    let names = Set(plans.map(\.name))
    let missing = Dictionary(grouping: released.filter { !names.contains($0.plan) }, by: \.plan)
    return missing.keys.sorted().map { name in
      let versions = (missing[name] ?? []).map(\.schema.version).sorted()
        .map(\.description).joined(separator: ", ")
      let hint = Suggestion.nearest(to: name, among: names.sorted())
      return Finding(
        severity: .error, code: .noPlan,
        message:
          "\(name): the plan was released with \(versions), but the plugin does not have it: "
          + "its stores are not migrated",
        fix: "add \(name).self to #InstarPlugin"
          + (hint.map { "; if the plan is called \($0) now, call it \(name) again" } ?? "")
          + "; if another plan has its versions, export that one's and remove the files of \(name)")
    }
  }

  /// Versions that are not as they were released: stores of users have the released structure.
  private var releaseFindings: [Finding] {
    released.filter { $0.plan == plan.name }.compactMap { document in
      let number = document.schema.version
      guard let version = version(number) else {
        return finding(
          .error, .unknownVersion,
          "\(number) was released, but the plan does not have it: its stores are not migrated",
          fix: "add the version to `schemas`, with a stage that starts at it")
      }
      let changes = SchemaComparison(
        from: .init(document.schema, computedDefaults: Set(document.computedDefaults)),
        to: .init(version.schema)
      ).changes.map(\.sentence)
      guard document.fingerprint != version.fingerprint || !changes.isEmpty else { return nil }
      let list = changes.isEmpty ? "its tables differ" : changes.prefix(5).joined(separator: "; ")
      let rest = changes.count > 5 ? "; and \(changes.count - 5) more" : ""
      return finding(
        .error, .unknownVersion,
        "\(number) is not as it was released: it \(list)\(rest)",
        fix:
          "make the models of \(typeName(of: version)) as they were, and write the change into a new version"
      )
    }
  }

  private var versionFindings: [Finding] {
    var findings: [Finding] = []
    for (index, version) in plan.versions.enumerated() {
      let number = version.schema.version
      if index + 1 < plan.versions.count, !plan.stages.contains(where: { $0.from == number }) {
        let next = plan.versions[index + 1]
        findings.append(
          finding(
            .error, .noMigrationPath, "no stage starts at \(number): its stores are not migrated",
            fix: "add a stage: .custom(fromVersion: \(typeName(of: version)).self, "
              + "toVersion: \(typeName(of: next)).self, willMigrate: …, didMigrate: …)"))
      }
      if !version.unlistedModels.isEmpty {
        let models = version.unlistedModels.map { "\($0).self" }.joined(separator: ", ")
        findings.append(
          finding(
            .warning, nil,
            "\(number) does not list all models that its models reference; Instar adds \(models)",
            fix: "add \(models) to `models` of \(typeName(of: version))"))
      }
      let twins = plan.versions[..<index].filter { $0.fingerprint == version.fingerprint }
      if let twin = twins.first {
        findings.append(
          finding(
            .warning, nil,
            "\(twin.schema.version) and \(number) have the same structure: a store that declares no "
              + "version may be at either",
            fix: "adopt such a store as its version: "
              + "instarctl migrate --adopt \(number) --plugin '\(plugin)' STORE"))
      }
    }
    return findings
  }

  /// Arrays of models without inverse that are likely meant as one relationship.
  var arrayFindings: [Finding] {
    plan.versions.map(\.schema).separateArrayNotes.map { note, correction in
      finding(correction == nil ? .note : .warning, nil, note, fix: correction)
    }
  }

  /// Names in `acceptedLosses` that no store can have, because a run starts at no version with such a property.
  private var lossFindings: [Finding] {
    let names = plan.versions.dropLast().flatMap { version in
      version.schema.entities.flatMap { entity in
        [entity.name]
          + (entity.attributes.map(\.name) + entity.relationships.map(\.name))
          .map { "\(entity.name).\($0)" }
      }
    }
    let known = Set(names)
    return plan.acceptedLosses.filter { !known.contains($0) }.map { name in
      let hint = Suggestion.nearest(to: name, among: known.sorted())
      return finding(
        .warning, .invalidPlan,
        "acceptedLosses names '\(name)', which no version before the last one has",
        fix: hint.map { "write \"\($0)\"" } ?? "remove it")
    }
  }

  private func findings(on stage: StageManifest) -> [Finding] {
    guard let old = version(stage.from), let new = version(stage.to) else { return [] }
    let way = "\(stage.from) → \(stage.to)"
    let difference = SchemaDifference(from: old.schema, to: new.schema)
    return (stage.kind == .lightweight ? unusedInitialValues(in: difference, way: way) : [])
      + difference.unknownOriginalNames.map {
        finding(.warning, nil, $0.sentence, fix: $0.correction)
      }
      + (new.schema.format.hasMetadata ? [] : unindexedKeys(in: difference, way: way))
      + difference.readingChanges(from: old.valueShapes, to: new.valueShapes).map { change in
        finding(
          .note, nil,
          "\(way) \(change.sentence): a run reads all of them, and fails (I204) if the new type "
            + "cannot read one of them"
        )
      }
      + difference.changes.compactMap { finding(on: $0, in: difference, stage, way: way) }
  }

  /// New optional properties whose initial value existing rows do not get.
  private func unusedInitialValues(in difference: SchemaDifference, way: String) -> [Finding] {
    difference.entities.filter { $0.old != nil }.flatMap { mapping in
      mapping.attributes.compactMap { attribute in
        guard attribute.old == nil, attribute.new.isOptional, attribute.new.storedDefault != nil
        else { return nil }
        let path = "\(mapping.new.name).\(attribute.new.name)"
        return finding(
          .warning, nil,
          "\(way) adds \(path), which is optional: existing rows get nil, not its initial value",
          fix:
            "if they need the value, make \(path) required, or set it in didMigrate of a custom stage"
        )
      }
    }
  }

  /// The foreign keys that a stage adds to ordinary tables without an index. The stores of a version have the same
  /// indexes, and an app's own table may have none, so only the model can add one.
  private func unindexedKeys(in difference: SchemaDifference, way: String) -> [Finding] {
    difference.entities.flatMap { mapping -> [Finding] in
      let entity = mapping.new
      let indexed =
        (entity.indices + entity.uniquenessConstraints).compactMap(\.first)
        + entity.fetchIndexes.compactMap(\.elements.first?.property)
      return mapping.relationships.compactMap { relationship in
        let key = relationship.new
        guard relationship.old == nil, key.isToOneRelationship, key.column?.isPrimaryKey != true,
          !mapping.keptColumns.values.contains(key.name), !indexed.contains(key.name)
        else { return nil }
        return finding(
          .warning, nil,
          "\(way) adds \(entity.name).\(key.name), a foreign key without an index: SQLite reads all rows of "
            + "\(entity.name) to find those of one \(key.destination), also when a \(key.destination) is deleted",
          fix: "write #Index<\(entity.name)>([\\.\(key.name)]) in the model")
      }
    }
  }

  private func finding(
    on change: SchemaDifference.Change, in difference: SchemaDifference, _ stage: StageManifest,
    way: String
  ) -> Finding? {
    let sentence = "\(way) \(change.sentence)"
    if let loss = losing(change, in: difference) {
      return isAccepted(loss)
        ? nil
        : finding(
          .warning, .unacceptedLoss, "\(sentence): a run is refused if they have values",
          fix: "\(Self.move(in: stage)), or add \"\(loss)\" to the plan's acceptedLosses")
    }
    if change.kind == .destructive {
      let retyped = difference.entities.first { $0.new.name == change.entity }
        .flatMap { difference.retypedEnums($0).first { $0.name == change.property } }
      let rename = difference.possibleRenames.first {
        ($0.entity, $0.removed) == (change.entity, change.property)
      }
      return finding(
        .warning, nil, sentence,
        fix: retyped?.correction(of: change.entity)
          ?? (rename.map { "\($0.correction); else " } ?? "")
          + "check that nothing needs them; only the backup of a store keeps them")
    }
    guard let reason = change.reasonForCustomStage else { return nil }
    switch stage.kind {
    case .lightweight:
      let stages =
        "write a custom stage; run: instarctl schema diff '\(plugin)@\(stage.from)' "
        + "'\(plugin)@\(stage.to)' --plan \(plan.name)"
      guard let need = change.rowsInNeed else {
        return finding(
          .error, .needsCustomStage, "\(way) is lightweight, but \(reason)", fix: stages)
      }
      return finding(
        .warning, .needsCustomStage, "\(way): a run is refused if \(Self.rows(need)): \(reason)",
        fix: difference.addsEmptyColumn(change)
          ? difference.cureOfEmptyColumn(change)
          : "give the property an initial value, make it optional, or \(stages)")
    case .custom, .sql, .transform, .bridge:
      if difference.addsEmptyColumn(change), !isComputed(change, by: stage) {
        return finding(
          .warning, .missingRequiredValues,
          "\(way): a run fails if \(change.entity) has rows: \(reason), and didMigrate runs too late "
            + "for a column of an ordinary table; only willMigrate can remove the rows first",
          fix: difference.cureOfEmptyColumn(change))
      }
      if change.kind == .bookkeeping, !isAccepted(change.entity) {
        return finding(
          .warning, .unacceptedLoss,
          "\(way): \(reason), so that a run is refused if rows are lost",
          fix:
            "\(Self.insertion(of: change.entity, in: stage)), or add \"\(change.entity)\" to the "
            + "plan's acceptedLosses")
      }
      guard change.kind == .conversion, let path = sourcePath(of: change, in: difference),
        !isAccepted(path), isKept(change.entity, change.property ?? "", after: stage.to),
        !isComputed(change, by: stage)
      else { return nil }
      return finding(
        .warning, .unacceptedLoss,
        "\(sentence): a run is refused if values or links of \(path) are neither converted nor written by code",
        fix: "\(Self.correction(of: stage)), or add \"\(path)\" to the plan's acceptedLosses")
    }
  }

  /// The rows that need a custom stage, in a condition: "Note has rows".
  private static func rows(_ need: SchemaDifference.RowsInNeed) -> String {
    need.property.map { "rows of \(need.entity) have no value of '\($0)'" }
      ?? "\(need.entity) has rows" + (need.excludesSubentities ? " of its own" : "")
  }

  /// Whether a transform of the stage writes the property in every row.
  private func isComputed(_ change: SchemaDifference.Change, by stage: StageManifest) -> Bool {
    guard let property = change.property else { return false }
    return stage.computedProperties?.contains("\(change.entity).\(property)") == true
  }

  /// What inserts rows in a stage of this kind.
  private static func insertion(of entity: String, in stage: StageManifest) -> String {
    switch stage.kind {
    case .lightweight, .custom: "insert the rows of \(entity) in didMigrate"
    case .bridge: "insert the rows of \(entity) in the stage's code"
    case .sql, .transform:
      "make the stage a bridge or a custom one, and insert the rows of \(entity) there"
    }
  }

  /// What moves values to other properties before a stage of this kind removes theirs.
  private static func move(in stage: StageManifest) -> String {
    switch stage.kind {
    case .custom: "move the values in willMigrate"
    case .lightweight: "make the stage custom, and move the values in willMigrate"
    case .sql: "move the values in a statement of `before`"
    case .transform: "set another property from it in a Transform"
    case .bridge: "read the values from the old context in the stage's code"
    }
  }

  /// What writes values in a stage of this kind.
  private static func correction(of stage: StageManifest) -> String {
    switch stage.kind {
    case .lightweight, .custom: "write them in didMigrate"
    case .sql: "write them in a statement of `after`"
    case .transform: "set the property in a Transform"
    case .bridge: "write them in the stage's code"
    }
  }

  private func isAccepted(_ path: String) -> Bool { plan.acceptedLosses.contains(path) }

  /// The property that some rows of its entity lose, as `acceptedLosses` has it.
  private func losing(
    _ change: SchemaDifference.Change, in difference: SchemaDifference
  ) -> String? {
    guard change.kind == .destructive, let property = change.property else { return nil }
    let entity =
      difference.entities.first { $0.new.name == change.entity }.map { $0.old?.name ?? "" }
      ?? change.entity
    return difference.entitiesLosing(property, of: entity).isEmpty ? nil : "\(entity).\(property)"
  }

  /// Whether the last version still has a property of a version. What a later stage removes, needs nobody's acceptance.
  private func isKept(_ entity: String, _ property: String, after number: Schema.Version) -> Bool {
    var (entity, property, number) = (entity, property, number)
    var steps = 0
    while let stage = plan.stages.first(where: { $0.from == number }), steps < plan.stages.count,
      let old = version(stage.from), let new = version(stage.to)
    {
      let difference = SchemaDifference(from: old.schema, to: new.schema)
      guard let mapping = difference.entities.first(where: { $0.old?.name == entity }) else {
        return false
      }
      let removed = mapping.removedAttributes.map(\.name) + mapping.removedRelationships.map(\.name)
      if removed.contains(property) { return false }
      (entity, property, number) = (mapping.new.name, mapping.newName(of: property), stage.to)
      steps += 1
    }
    return true
  }

  /// The property by its names in the stage's first version, as `acceptedLosses` has them.
  private func sourcePath(
    of change: SchemaDifference.Change, in difference: SchemaDifference
  ) -> String? {
    guard let property = change.property,
      let mapping = difference.entities.first(where: { $0.new.name == change.entity }),
      let entity = mapping.old?.name, let source = mapping.sourceName(of: property)
    else { return nil }
    return "\(entity).\(source)"
  }

  private func finding(
    _ severity: Finding.Severity, _ code: InstarError.Code?, _ message: String, fix: String? = nil
  ) -> Finding {
    Finding(severity: severity, code: code, message: "\(plan.name): \(message)", fix: fix)
  }

  private func version(_ number: Schema.Version) -> VersionManifest? {
    plan.versions.first { $0.schema.version == number }
  }

  private func typeName(of version: VersionManifest) -> String {
    version.name ?? VersionName.type("Schema", version.schema.version)
  }
}
