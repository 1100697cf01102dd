internal import GRDB
internal import InstarChange
internal import InstarSchema
internal import InstarStore
internal import InstarWire

/// Values of the store that a run loses unless code of the plan writes them: attributes that change their type,
/// properties that only some rows keep, links that are stored elsewhere afterwards, and rows that lose their table.
///
/// The process that makes the change of schema counts them, row by row (see `UnwrittenValues` in `InstarChange`). Here
/// its counts get the names of the store's version, and somebody has to accept them.
struct ConvertedValues {
  let property: PropertyPath
  var count: Int
  /// Only of a plan: a worker reports numbers.
  var rows: AffectedRows?

  var path: String { property.title }

  var sentence: String {
    if property.isOfRows { return "drops \(count) rows of \(path)" }
    if property.isReportedOnly { return "drops \(count) values of \(path)" }
    return property.isRelationship
      ? "drops \(count) links of \(path)" : "drops \(count) non-null values of \(path)"
  }

  /// " (rows 3, 8 and 9 others)".
  fileprivate var place: String {
    guard let rows, !rows.keys.isEmpty else { return "" }
    return " (\(rows.text))"
  }

  /// Counts come from a worker, which may send any number.
  fileprivate mutating func add(_ more: Int) {
    let (sum, isTooLarge) = count.addingReportingOverflow(more)
    count = isTooLarge ? .max : sum
  }

  /// Why they are lost.
  fileprivate var reason: String {
    if property.isReportedOnly {
      return "Instar cannot tell which property of the store's version these values come from"
    }
    if property.isOfRows {
      return "its table gets the rows of another entity, which may have the same keys"
    }
    if property.types.count > 1 { return "its type changes \(property.typeChange)" }
    guard property.losingEntities.isEmpty else {
      return
        "rows of \(property.losingEntities.joined(separator: " and ")) no longer have this property"
    }
    return property.isRelationship
      ? "its links cannot stay where they are stored" : "another property gets its column"
  }

  /// Whether rows of some entities lose the property: nothing can write it there after the change of schema.
  private var leavesRows: Bool { property.types.count < 2 && !property.losingEntities.isEmpty }

  /// What keeps them in a stage of this kind.
  fileprivate func exceptions(_ kind: StageManifest.Kind) -> String {
    if [.sql, .transform, .bridge].contains(kind), !leavesRows {
      return "the stage's code \(property.isOfRows ? "inserts as many" : "writes them")"
    }
    if property.isOfRows { return "didMigrate inserts as many" }
    if leavesRows {
      return "willMigrate copies them and sets the property to nil"
    }
    return property.types.last == .codable
      ? "the new type decodes them or didMigrate writes them" : "didMigrate writes them"
  }

  /// What the plan's author can do to keep them in a stage of this kind.
  fileprivate func remedy(_ kind: StageManifest.Kind) -> String {
    switch kind {
    case .lightweight where !property.isOfRows && !leavesRows:
      return "write the values in didMigrate of a custom stage"
    case .lightweight, .custom: break
    case .sql where leavesRows, .transform where leavesRows, .bridge where leavesRows: break
    case .bridge:
      return "\(property.isOfRows ? "insert the rows" : "write the values") in the stage's code"
    case .sql where !property.isOfRows: return "write the values in a statement of `after`"
    case .transform where !property.isOfRows && !property.isRelationship:
      return "set the property in a Transform"
    case .sql, .transform: return "make the stage a bridge, and write what is lost in its code"
    }
    if property.isOfRows { return "insert the rows in didMigrate" }
    if leavesRows {
      return "let willMigrate of a custom stage copy the values, and set the property to nil"
    }
    return "write the values in didMigrate"
  }
}

extension MigrationPath {
  /// The properties that the last version reads as a narrower type of integer.
  fileprivate var narrowedProperties: [PropertyPath] {
    keptNarrowedProperties.get { propertyPaths.filter(readsNarrower) }
  }
}

extension StoreInspection {
  /// The values that are lost unless code of the plan writes them in their new type. Reads columns of all rows, so only
  /// `plan` asks.
  func convertedValues(_ openPolicy: OpenPolicy) throws(InstarError) -> [Finding] {
    let properties = path.propertyPaths
    let converted = properties.filter { $0.mayLose && !path.isComputed($0) }
    let narrowed = properties.filter { $0.isKept && $0.narrowestInteger != nil }
    guard !converted.isEmpty || !narrowed.isEmpty else { return [] }
    let layout = try layout(of: path.first)
    let file = try openPolicy.probeFile(paths.store)
    return try StoreReader.withReadOnlyStore(file.path) { db in
      try converted.compactMap { property -> Finding? in
        guard let rows = try db.unconverted(property, in: layout) else { return nil }
        let values = ConvertedValues(property: property, count: rows.count, rows: rows)
        return layout.makesConvertedColumnsEmpty
          ? finding(values) : requirement(values) ?? finding(values)
      } + narrowed.compactMap { try misfits($0, in: layout, db) }
    }
  }

  /// Integers that the last version cannot read, where no code of the plan can change them: they refuse a run.
  func unreadableIntegers(_ openPolicy: OpenPolicy) throws(InstarError) -> [Finding] {
    let narrowed = path.isLightweight ? path.narrowedProperties : []
    guard !narrowed.isEmpty else { return [] }
    let layout = try layout(of: path.first)
    let file = try openPolicy.probeFile(paths.store)
    return try StoreReader.withReadOnlyStore(file.path) { db in
      try narrowed.compactMap { try misfits($0, in: layout, db) }
    }
  }

  /// Finds integers that a narrower type cannot read. They stay in the store as they are, so a run that does not change
  /// them fails.
  private func misfits(
    _ property: PropertyPath, in layout: any StoreLayout, _ db: Database
  ) throws -> Finding? {
    guard let type = property.narrowestInteger, let range = type.integerRange,
      let rows = try db.rows(
        with: property, in: layout,
        where: { "\($0) NOT BETWEEN \(range.lowerBound) AND \(range.upperBound)" })
    else { return nil }
    let isRefused = path.isLightweight && path.readsNarrower(property)
    return Finding(
      severity: isRefused ? .error : .warning, code: .missingRequiredValues,
      message:
        "\(rows.count) values of \(property.title) (\(rows.text)) do not fit \(type.swiftName)"
        + (isRefused
          ? ", which version \(path.to) reads"
          : ": the run fails unless the plan's code changes them"),
      fix: isRefused
        ? "write a custom stage whose willMigrate writes values that fit, or keep the wider type"
        : "let willMigrate of a custom stage write values that fit, or keep the wider type",
      rows: rows)
  }

  /// Why no acceptance helps: the column must have a value before `didMigrate` runs. Only the worker knows which values
  /// the new type decodes, so these are not judged here.
  private func requirement(_ values: ConvertedValues) -> Finding? {
    let property = values.property
    guard property.types.count == 2, property.types.last != .codable,
      property.needsValue || property.needsUniqueValue && values.count > 1
    else { return nil }
    let (code, reason): (InstarError.Code, String) =
      property.needsValue
      ? (.missingRequiredValues, "its column is required and has no default")
      : (.duplicateUniqueValues, "its column is unique, and all would get its default")
    let later =
      "; or add an optional property in one version, write it in didMigrate, and require it in the next version"
    let (condition, fix) =
      switch path.kind(losing: property) {
      case .custom:
        ("willMigrate changes them", "let willMigrate write values that convert" + later)
      case .transform:
        ("a Transform computes them", "set the property in a Transform")
      case .sql:
        ("a statement changes them", "write values that convert in a statement of `before`")
      case .lightweight, .bridge:
        (
          "willMigrate of a custom stage changes them",
          "let willMigrate of a custom stage write values that convert" + later
        )
      }
    return Finding(
      severity: .warning, code: code,
      message: "\(values.count) values of \(values.path)\(values.place) do not convert "
        + "\(values.property.typeChange), and \(reason): the run fails unless \(condition)",
      fix: fix, rows: values.rows)
  }

  private func finding(_ values: ConvertedValues) -> Finding {
    let isAccepted = path.accepts(values)
    return Finding(
      severity: isAccepted ? .note : .warning, code: isAccepted ? nil : .unacceptedLoss,
      message:
        "\(values.sentence)\(values.place) unless \(values.exceptions(path.kind(losing: values.property))): "
        + values.reason
        + (isAccepted ? "; the plan accepts the loss" : ""),
      fix: isAccepted
        ? nil
        : path.lossAdvice(
          [values], command: MigrationCommand(store: paths.store, plugins: [plugin])),
      rows: values.rows)
  }
}

extension Database {
  /// Returns the rows whose value meets a condition on its column, as it is stored; `nil` for none, or if the entity
  /// has no such column.
  func rows(
    with property: PropertyPath, in layout: any StoreLayout, where condition: (String) -> String,
    arguments: StatementArguments = StatementArguments()
  ) throws -> AffectedRows? {
    let (owner, name) = property.origin
    guard let entity = layout.entity(named: owner),
      let column = entity.attributes.first(where: { $0.attribute.name == name })?.column.name
    else { return nil }
    return try KeyedRows(of: entity)
      .affected(self, where: [condition(column)], arguments: arguments)
  }

  /// Returns the rows with values or links that Instar does not convert by itself; `nil` for none, or where the store
  /// has none of the property's columns. Links count one by one, and have no keys.
  fileprivate func unconverted(
    _ property: PropertyPath, in layout: any StoreLayout
  ) throws -> AffectedRows? {
    let (owner, name) = property.origin
    guard let entity = layout.entity(named: owner) else { return nil }
    guard let name else {
      return try KeyedRows(of: entity).affected(self, where: [entity.ownRowCondition])
    }
    if let statement = layout.linkStatement("\(owner).\(name)") {
      let losing = layout.ownersOfLinks(["\(owner).\(name)": property.losingEntities])
      let links = try statement.count(
        self, findsBroken: false, losing: losing[statement.location] ?? [])
      let count = property.losingEntities.isEmpty ? links.count : links.losing
      return count > 0 ? AffectedRows(count: count, keys: []) : nil
    }
    guard let column = entity.attributes.first(where: { $0.attribute.name == name })?.column
    else { return nil }
    var unconverted = ""
    if property.types.count == 2, column.encoding == nil,
      let sql = NumberConversion.sql(
        column.name, from: property.types[0], to: property.types[1],
        keepsDecimalsAsNumbers: layout.format.keepsDecimalsAsNumbers)
    {
      unconverted = "(\(sql)) IS NULL"
    }
    let losing = layout.entityLayouts.filter { property.losingEntities.contains($0.name) }
    if property.types.count < 2 || !unconverted.isEmpty, let number = entity.entityColumn,
      !losing.isEmpty
    {
      let isLosing =
        "\(number) IN (\(losing.map { "\($0.number)" }.joined(separator: ", ")))"
      unconverted = unconverted.isEmpty ? isLosing : "(\(unconverted) OR \(isLosing))"
    }
    let conditions = ["\(column.name) IS NOT NULL", unconverted].filter { !$0.isEmpty }
    return try KeyedRows(of: entity).affected(self, where: conditions)
  }
}

extension MigrationPath {
  /// Whether the last version reads the integers of the first one, as they are stored, with fewer bits. A version in
  /// between reads none of them in lightweight stages.
  fileprivate func readsNarrower(_ property: PropertyPath) -> Bool {
    guard property.isKept, property.types.count == 1, let narrowest = property.narrowestInteger
    else { return false }
    return property.names.last?.contains { name in
      last.entitiesByName[name.entity]?.attributes.first { $0.name == name.property }?.type
        == narrowest
    } == true
  }

  /// Whether a transform writes the property in each row, in the last stage that may lose its values.
  fileprivate func isComputed(_ property: PropertyPath) -> Bool {
    guard property.losingEntities.isEmpty, let position = property.conversions.last,
      stages.indices.contains(property.start + position),
      property.names.indices.contains(position + 1),
      let computed = stages[property.start + position].computedProperties
    else { return false }
    return property.names[position + 1].allSatisfy { computed.contains(PropertyPath.title($0)) }
  }

  /// The plan names the property as the store's version does, or as the version does at which a stage converts it.
  func accepts(_ values: ConvertedValues) -> Bool {
    values.property.acceptableTitles.contains(where: acceptedLosses.contains)
  }

  /// What a run lost of the store's values, of what its stages report. Values that stages made themselves, and those of
  /// properties that the plan removes, are left out. A report about any other property has the names that it gives: a
  /// worker runs code of the plan, and nothing that it says may hide a loss.
  func losses(_ reports: [LostValues]) -> [ConvertedValues] {
    if reports.isEmpty { return [] }
    var losses = propertyPaths.map { ConvertedValues(property: $0, count: 0) }
    let added = addedPropertyPaths
    for report in reports where report.count > 0 {
      let version = schemas.firstIndex { $0.version == report.version }
      func isMeant(_ property: PropertyPath) -> Bool {
        guard let version else { return false }
        return property.has(report.entity, report.property, at: version)
      }
      if let index = losses.firstIndex(where: { isMeant($0.property) }) {
        losses[index].add(report.count)
      } else if !added.contains(where: isMeant) {
        var property = PropertyPath((report.entity, report.property))
        (property.isReportedOnly, property.isKept) = (true, true)
        losses.append(ConvertedValues(property: property, count: report.count))
      }
    }
    return losses.filter { $0.count > 0 && $0.property.isKept }
  }

  /// The kind of the last stage that may lose values of a property.
  fileprivate func kind(losing property: PropertyPath) -> StageManifest.Kind {
    guard let position = property.conversions.last,
      stages.indices.contains(property.start + position)
    else { return .custom }
    return stages[property.start + position].kind
  }

  /// What to do where values are lost.
  func lossAdvice(_ values: [ConvertedValues], command: MigrationCommand) -> String {
    let names = values.map { "\"\($0.path)\"" }.joined(separator: ", ")
    let remedies = values.map { $0.remedy(kind(losing: $0.property)) }.reduce(into: [String]()) {
      known, remedy in
      if !known.contains(remedy) { known.append(remedy) }
    }
    if let obstacle = obstacle(toLosing: values) {
      return remedies.joined(separator: "; ") + "; " + obstacle
    }
    return remedies.joined(separator: "; ") + "; or add \(names) to the plan's acceptedLosses; "
      + "or run: \(command.acceptingLoss())"
  }

  /// What to say in place of how to accept a loss, where a run that accepts it fails: rows must have a value, and
  /// nothing gives them one. `nil` for none.
  private func obstacle(toLosing values: [ConvertedValues]) -> String? {
    func list(_ values: [ConvertedValues]) -> String {
      values.map { "'\($0.path)'" }.joined(separator: ", ")
    }
    let required = values.filter { requiresValue($0.property) }
    guard required.isEmpty else {
      return
        "or give \(list(required)) a default or make it optional: it is required in version \(to), "
        + "so the loss cannot be accepted"
    }
    let unique = values.filter { $0.property.needsUniqueValue && $0.count > 1 }
    return unique.isEmpty
      ? nil : "\(list(unique)) must be unique in version \(to), so the loss cannot be accepted"
  }

  /// Whether the last version requires a value of an attribute and has no default for it.
  private func requiresValue(_ property: PropertyPath) -> Bool {
    property.types.count > 1
      && property.names.last?.contains { name in
        last.entitiesByName[name.entity]?.attributes.first { $0.name == name.property }.map {
          !$0.isOptional && $0.storedDefault == nil && $0.column?.defaultValue == nil
        } == true
      } == true
  }

  /// - Throws: `unacceptedLoss` if values are lost and neither the plan nor the request accepts that.
  func requireAcceptance(
    of lost: [ConvertedValues], isAccepted: Bool, command: MigrationCommand
  ) throws(InstarError) {
    let lost = lost.filter { !isAccepted && !accepts($0) }
    guard !lost.isEmpty else { return }
    throw InstarError(
      .unacceptedLoss, "cannot migrate the store",
      cause: lost.map {
        "the run \($0.sentence): \($0.reason); the plan's code did not write them"
      }.joined(separator: "\n"),
      next: lossAdvice(lost, command: command))
  }
}
