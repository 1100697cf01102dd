internal import GRDB
internal import InstarStore

/// Columns that hold the key of a row elsewhere: those of a link, or of a foreign key of the database. Whether that row
/// exists follows from the values in these columns and in those that they reference, and from no other value.
struct RowReference: Hashable {
  /// The columns that hold the key, and the one with the entity of the row, if there is one.
  let columns: ColumnList
  /// The columns of the key that is referenced, and the one with the entity of the row, if there is one.
  let target: ColumnList
  /// The numbers of the entities on both sides, where a column has them.
  private let numbers: [[Int]]

  /// A foreign key of the database.
  init(columns: ColumnList, target: ColumnList) {
    self.columns = columns
    self.target = target
    numbers = [[], []]
  }

  /// A link that rows of an entity hold.
  init(_ key: InstarStore.ForeignKey, of owner: EntityLayout, to other: EntityLayout) {
    self.init(
      key, ofTable: owner.table, [owner.entityColumn].compactMap(\.self),
      owner.entityColumn == nil ? [] : owner.numbers, to: other)
  }

  /// One end of a link that rows of a join table hold.
  init(_ key: InstarStore.ForeignKey, ofTable table: String, to other: EntityLayout) {
    self.init(key, ofTable: table, [], [], to: other)
  }

  private init(
    _ key: InstarStore.ForeignKey, ofTable table: String, _ entityColumn: [String],
    _ ownNumbers: [Int], to other: EntityLayout
  ) {
    columns = ColumnList(table: table, columns: key.columns + entityColumn)
    target = ColumnList(
      table: other.table,
      columns: (key.referredColumns ?? other.key.columns)
        + [other.entityColumn].compactMap(\.self))
    numbers = [ownNumbers, other.entityColumn == nil ? [] : other.numbers]
  }

  /// Whether as many rows lack the row that they reference as by an earlier reference, because all values that decide
  /// about it are the same. `false` where they were not summed.
  func isUnchanged(
    since earlier: RowReference, _ now: ColumnSums, _ before: ColumnSums
  ) -> Bool {
    numbers == earlier.numbers
      && now.hasValues(in: columns, of: before, in: earlier.columns)
      && now.hasValues(in: target, of: before, in: earlier.target)
  }

  /// Whether all rows find the row that they reference. `true` is certain where the indexes match their tables; else
  /// SQL has to look the keys up.
  func isResolved(_ db: Database) throws -> Bool {
    let kinds = numbers[1]
    let keyColumns = target.columns.dropLast(kinds.isEmpty ? 0 : 1)
    let columns = columns.columns.dropLast(numbers[0].isEmpty ? 0 : 1)
    guard let key = keyColumns.first, let column = columns.first, keyColumns.count == 1,
      columns.count == 1
    else { return false }
    return try ReferencedRows(
      table: target.table, key: key,
      kind: target.columns.last.flatMap { kinds.isEmpty ? nil : ($0, kinds) }
    ).areAll(in: column, of: self.columns.table, db)
  }
}
