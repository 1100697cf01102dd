internal import GRDB
internal import InstarSchema
internal import InstarStore
internal import InstarWire

/// Values of the store that a run loses unless code of the plan writes them: attributes that change their type, and
/// links that are stored elsewhere afterwards.
///
/// The process that makes the change of schema counts them, row by row (see `UnwrittenValues` in `InstarChange`). Here
/// its counts get the names of the store's version, and somebody has to accept them.
struct ConvertedValues {
  let property: PropertyPath
  var count: Int

  var path: String { property.title }

  var sentence: String {
    if property.isReportedOnly { return "drops \(count) values of \(path)" }
    return property.isRelationship
      ? "drops \(count) links of \(path)" : "drops \(count) non-null values of \(path)"
  }

  /// Counts come from a worker, which may send any number.
  fileprivate mutating func add(_ more: Int) {
    let (sum, isTooLarge) = count.addingReportingOverflow(more)
    count = isTooLarge ? .max : sum
  }

  /// Why they are lost.
  fileprivate var reason: String {
    if property.isReportedOnly { return "no property of the store's version is known to become it" }
    return property.isRelationship
      ? "its links cannot stay where they are stored" : "its type changes \(property.typeChange)"
  }
}

extension StoreInspection {
  /// The values that are lost unless code of the plan writes them in their new type. Reads columns of all rows, so only
  /// `plan` asks.
  func convertedValues(_ openPolicy: OpenPolicy) throws(InstarError) -> [Finding] {
    let converted = path.propertyPaths.filter(\.isConverted)
    guard !converted.isEmpty else { return [] }
    let layout = try layout(of: path.first)
    let file = try openPolicy.probeFile(paths.store)
    return try StoreReader.withReadOnlyStore(file.path) { db in
      try converted.compactMap { property -> Finding? in
        guard let count = try db.unconverted(property, in: layout), count > 0 else { return nil }
        return finding(ConvertedValues(property: property, count: count))
      }
    }
  }

  private func finding(_ values: ConvertedValues) -> Finding {
    let isAccepted = path.accepts(values)
    let exceptions =
      values.property.types.last == .codable
      ? "the new type decodes them or didMigrate writes them" : "didMigrate writes them"
    return Finding(
      severity: isAccepted ? .note : .warning, code: isAccepted ? nil : .unacceptedLoss,
      message: "\(values.sentence) unless \(exceptions): \(values.reason)"
        + (isAccepted ? "; the plan accepts the loss" : ""),
      fix: isAccepted ? nil : path.lossAdvice([values], store: paths.store, plugin: plugin))
  }
}

extension Database {
  /// How many values or links there are that Instar does not convert by itself; `nil` where the store has none of the
  /// property's columns.
  fileprivate func unconverted(
    _ property: PropertyPath, in layout: any StoreLayout
  ) throws -> Int? {
    let (owner, name) = property.names[0]
    guard let entity = layout.entityLayouts.first(where: { $0.name == owner }) else { return nil }
    if let storage = entity.relationships.first(where: { $0.relationship.name == name }) {
      return try linkCount(storage, of: entity, in: layout)
    }
    guard let column = entity.attributes.first(where: { $0.attribute.name == name })?.column
    else { return nil }
    var conditions = ["\(column.name) IS NOT NULL"] + [entity.rowCondition].compactMap(\.self)
    if property.types.count == 2, column.encoding == nil,
      let sql = NumberConversion.sql(
        column.name, from: property.types[0], to: property.types[1],
        keepsDecimalsAsNumbers: layout.format.keepsDecimalsAsNumbers)
    {
      conditions.append("(\(sql)) IS NULL")
    }
    let sql = "SELECT count(*) FROM \(entity.table) WHERE \(conditions.joined(separator: " AND "))"
    return try Int.fetchOne(self, sql: sql)
  }

  private func linkCount(
    _ storage: EntityLayout.RelationshipStorage, of entity: EntityLayout, in layout: any StoreLayout
  ) throws -> Int? {
    guard
      let destination = layout.entityLayouts.first(where: {
        $0.name == storage.relationship.destination
      })
    else { return nil }
    return try LinkStatement(storage.location, of: entity, to: destination)
      .count(self, findsBroken: false).count
  }
}

extension MigrationPath {
  /// The plan names the property as the store's version does, or as a later one that a stage of the path starts at.
  func accepts(_ values: ConvertedValues) -> Bool {
    values.property.names.contains { acceptedLosses.contains("\($0.entity).\($0.property)") }
  }

  /// What a run lost of the store's values, of what its stages report. Values that stages made themselves, and those of
  /// properties that the plan removes, are left out. A report about any other property has the names that it gives: a
  /// worker runs code of the plan, and nothing that it says may hide a loss.
  func losses(_ reports: [LostValues]) -> [ConvertedValues] {
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
        let names = [(entity: report.entity, property: report.property)]
        losses.append(
          ConvertedValues(
            property: PropertyPath(names: names, isReportedOnly: true, isKept: true),
            count: report.count))
      }
    }
    return losses.filter { $0.count > 0 && $0.property.isKept }
  }

  /// What to do where values are lost.
  func lossAdvice(_ values: [ConvertedValues], store: String, plugin: String) -> String {
    let names = values.map { "\"\($0.path)\"" }.joined(separator: ", ")
    return "write the values in didMigrate; or add \(names) to the plan's acceptedLosses; "
      + "or run: "
      + CommandText.migrate(store, plugins: [plugin], options: "--accept-loss")
  }

  /// - Throws: `unacceptedLoss` if values are lost and neither the plan nor the request accepts that.
  func requireAcceptance(
    of lost: [ConvertedValues], isAccepted: Bool, store: String, plugin: String
  ) throws(InstarError) {
    let lost = lost.filter { !isAccepted && !accepts($0) }
    guard !lost.isEmpty else { return }
    throw InstarError(
      .unacceptedLoss, "cannot migrate the store",
      cause: lost.map {
        "the run \($0.sentence): \($0.reason), and no code of the plan wrote them"
      }.joined(separator: "\n"),
      next: lossAdvice(lost, store: store, plugin: plugin))
  }
}
