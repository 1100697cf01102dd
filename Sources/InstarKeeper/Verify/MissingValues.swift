internal import GRDB
internal import InstarSchema
internal import InstarStore

/// The rows of an entity without a value of a required property.
struct MissingValues {
  let owner: String
  let property: String
  let rows: AffectedRows

  var sentence: String {
    rows.sentence(of: owner, have: "no value for the required property '\(property)'")
  }

  /// What gives rows a value that their own version requires already: neither a default nor didMigrate does.
  static let cure =
    "write these values in the app, or make the stage a custom one and set them in willMigrate"
}

extension StoreLayout {
  /// Returns the first required property without a value in some rows; `nil` where all rows have their values.
  func firstMissingValues(_ db: Database) throws -> MissingValues? {
    try missingValues(db, in: requiredColumns, limit: 1).first
  }

  /// Returns the properties of these columns without a value in some rows.
  func missingValues(
    _ db: Database, in requiredColumns: [RequiredColumns], limit: Int = .max
  ) throws -> [MissingValues] {
    var found: [MissingValues] = []
    for required in requiredColumns where !required.columns.isEmpty {
      let rows = KeyedRows(
        table: required.table, conditions: [required.rowCondition].compactMap(\.self),
        keys: entityLayouts.first { $0.table == required.table }?.key.columns ?? [])
      // The plus keeps SQLite from using an index, which another thread may still be checking.
      let missing = required.columns.map { "+\($0.column) IS NULL" }
      guard try rows.hasRows(db, whereAny: missing) else { continue }
      for (column, condition) in zip(required.columns, missing) {
        guard let rows = try rows.affected(db, where: [condition]) else { continue }
        found.append(MissingValues(owner: required.owner, property: column.name, rows: rows))
        if found.count == limit { return found }
      }
    }
    return found
  }
}
