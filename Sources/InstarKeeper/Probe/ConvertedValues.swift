internal import GRDB
internal import InstarSchema
internal import InstarStore
internal import InstarWire

/// The values of attributes whose type changes on the way. The change of schema makes a new column; the values come
/// along only where Instar can carry them over (`CarriedValues`) or code of the plan writes them.
///
/// Whether it did is read from the clone, never asked of the worker: an attribute counts as written where one of its
/// rows has a value that is not the attribute's default.
struct ConvertedValues {
  struct Attribute {
    /// Names of the first version and of the last one.
    var before: (entity: String, name: String)
    var after: (entity: String, attribute: Schema.Attribute)
    var types: (before: Schema.AttributeType, after: Schema.AttributeType)
    /// Non-null values in the store.
    var count = 0
    var distinct = 0
    /// Whether they are numbers that all keep their value in the new type.
    var areCarriedOver = false

    var path: String { "\(before.entity).\(before.name)" }

    var sentence: String { "drops \(count) non-null values of \(path)" }
  }

  /// Those that have values.
  let attributes: [Attribute]

  /// - Parameter layout: That of the store, which is at the first version.
  init(_ db: Database, layout: any StoreLayout, path: MigrationPath) throws {
    attributes = try path.convertedAttributes.compactMap { attribute in
      var attribute = attribute
      guard
        let values = try db.values(
          attribute.before.name, of: attribute.before.entity, in: layout), values.count > 0
      else { return nil }
      (attribute.count, attribute.distinct) = values
      attribute.areCarriedOver = try db.convertsEveryNumber(attribute, in: layout)
      return attribute
    }
  }

  /// The attributes of which a migrated clone has no value that was written.
  func unwritten(in clone: Database, layout: any StoreLayout) throws -> [Attribute] {
    try attributes.filter { attribute in
      let (entity, after) = attribute.after
      guard
        let rows = layout.entityLayouts.first(where: { $0.name == entity }),
        let sql = rows.rowCountStatement(), let count = try Int.fetchOne(clone, sql: sql),
        count > 0,
        let written = try clone.values(
          after.name, of: entity, in: layout,
          except: attribute.areCarriedOver ? [] : after.defaults)
      else { return false }
      if written.count == 0 || attribute.areCarriedOver { return written.count == 0 }
      // A default that each worker computes for itself, as UUID(): many values became one.
      return after.storedDefault != nil && written.distinct == 1 && attribute.distinct > 1
    }
  }
}

extension Database {
  /// How many rows have a value of an attribute, and how many different ones; `nil` where the entity has no such
  /// attribute.
  fileprivate func values(
    _ name: String, of entity: String, in layout: any StoreLayout, except literals: [String] = []
  ) throws -> (count: Int, distinct: Int)? {
    guard let entity = layout.entityLayouts.first(where: { $0.name == entity }),
      let column = entity.attributes.first(where: { $0.attribute.name == name })?.column.name
    else { return nil }
    var conditions = ["\(column) IS NOT NULL"] + [entity.rowCondition].compactMap(\.self)
    conditions += literals.map { "\(column) IS NOT \($0)" }
    let row = try Row.fetchOne(
      self,
      sql: "SELECT count(*), count(DISTINCT \(column)) FROM \(entity.table) "
        + "WHERE \(conditions.joined(separator: " AND "))")
    return row.map { ($0[0], $0[1]) }
  }
}

extension Database {
  /// Whether every value is a number that SQL converts to the new type without a change of its value.
  fileprivate func convertsEveryNumber(
    _ attribute: ConvertedValues.Attribute, in layout: any StoreLayout
  ) throws -> Bool {
    guard let entity = layout.entityLayouts.first(where: { $0.name == attribute.before.entity }),
      let column = entity.attributes.first(where: { $0.attribute.name == attribute.before.name })?
        .column, column.encoding == nil,
      let sql = NumberConversion.sql(
        column.name, from: attribute.types.before, to: attribute.types.after,
        keepsDecimalsAsNumbers: layout.format.keepsDecimalsAsNumbers)
    else { return false }
    return try Int.fetchOne(
      self,
      sql:
        "SELECT 1 FROM \(entity.table) WHERE \(column.name) IS NOT NULL AND (\(sql)) IS NULL LIMIT 1"
    ) == nil
  }
}

extension Schema.Attribute {
  /// The default value in the forms that a column may have of it, as SQL literals.
  fileprivate var defaults: [String] {
    guard let storedDefault else { return [] }
    let archive = type == .codable ? ArchivedCollection.archive(ofEmpty: storedDefault) : nil
    return [storedDefault, archive].compactMap { $0?.literal }
  }
}

extension StoreInspection {
  /// The values that are lost unless code of the plan writes them in their new type. Reads columns of all rows, so only
  /// `plan` asks.
  func convertedValues(_ openPolicy: OpenPolicy) throws(InstarError) -> [Finding] {
    guard !path.convertedAttributes.isEmpty else { return [] }
    let layout = try layout(of: path.first)
    let file = try openPolicy.probeFile(paths.store)
    let converted = try StoreReader.withReadOnlyStore(file.path) { db in
      try ConvertedValues(db, layout: layout, path: path)
    }
    return converted.attributes.filter { !$0.areCarriedOver }.map { attribute in
      let isAccepted = path.accepts(attribute)
      let exceptions =
        attribute.types.after == .codable
        ? "the new type decodes them or didMigrate writes them" : "didMigrate writes them"
      let change =
        "its type changes from \(attribute.types.before.rawValue) to \(attribute.types.after.rawValue)"
      return Finding(
        severity: isAccepted ? .note : .warning, code: isAccepted ? nil : .unacceptedLoss,
        message: "\(attribute.sentence) unless \(exceptions): \(change)"
          + (isAccepted ? "; the plan accepts the loss" : ""),
        fix: isAccepted ? nil : path.lossAdvice([attribute], store: paths.store, plugin: plugin))
    }
  }
}

extension MigrationPath {
  func accepts(_ attribute: ConvertedValues.Attribute) -> Bool {
    acceptedLosses.contains(attribute.path)
  }

  /// What to do where values are lost.
  func lossAdvice(
    _ attributes: [ConvertedValues.Attribute], store: String, plugin: String
  ) -> String {
    let names = attributes.map { "\"\($0.path)\"" }.joined(separator: ", ")
    return "write the values in didMigrate; or add \(names) to the plan's acceptedLosses; "
      + "or run: "
      + CommandText.migrate(store, plugins: [plugin], options: "--accept-loss")
  }

  /// - Throws: `unacceptedLoss` if values are lost and neither the plan nor the request accepts that.
  func requireAcceptance(
    of unwritten: [ConvertedValues.Attribute], isAccepted: Bool, store: String, plugin: String
  ) throws(InstarError) {
    let lost = unwritten.filter { !isAccepted && !accepts($0) }
    guard !lost.isEmpty else { return }
    throw InstarError(
      .unacceptedLoss, "cannot migrate the store",
      cause: lost.map {
        "the run \($0.sentence): its type changes from \($0.types.before.rawValue) to "
          + "\($0.types.after.rawValue), and no code of the plan wrote the new values"
      }.joined(separator: "\n"),
      next: lossAdvice(lost, store: store, plugin: plugin))
  }

  /// The attributes of the first version whose values change their type before the last one, without counts.
  var convertedAttributes: [ConvertedValues.Attribute] {
    first.entities.flatMap { entity in
      entity.attributes.compactMap { conversion(of: $0, in: entity.name) }
    }
  }

  private func conversion(
    of attribute: Schema.Attribute, in entity: String
  ) -> ConvertedValues.Attribute? {
    var (owner, name, type) = (entity, attribute.name, attribute.type)
    var isConverted = false
    for difference in differences {
      guard let mapping = difference.entities.first(where: { $0.old?.name == owner }) else {
        return nil
      }
      if mapping.removedAttributes.contains(where: { $0.name == name }) { return nil }
      var next: (owner: String, attribute: Schema.Attribute)?
      // It may have moved to an entity above or below.
      for candidate in [mapping] + difference.entities where next == nil {
        next = candidate.attributes.first { $0.old?.name == name }
          .map { (candidate.new.name, $0.new) }
      }
      guard let next else { return nil }
      if !type.isStoredLike(next.attribute.type) { isConverted = true }
      (owner, name, type) = (next.owner, next.attribute.name, next.attribute.type)
    }
    guard isConverted,
      let last = last.entity(named: owner)?.attributes.first(where: { $0.name == name })
    else { return nil }
    return ConvertedValues.Attribute(
      before: (entity, attribute.name), after: (owner, last), types: (attribute.type, last.type))
  }
}
