internal import GRDB
internal import InstarSchema

extension StoreStructure {
  /// Reads the tables and indexes of a store of the format `coredata`, without the differences that mean nothing.
  ///
  /// Left out are the three tables that describe the store, persistent history (`ACHANGE`, `ATRANSACTION…`) and
  /// CloudKit mirroring (`ANSCK…`). No entity's table can have such a name: those begin with `Z` and a letter.
  static func readCoreData(_ db: Database) throws -> StoreStructure {
    try read(db) { name in
      StoreFormat.coredata.bookkeepingTables.contains(name)
        || ["ACHANGE", "ATRANSACTION", "ANSCK"].contains { name.hasPrefix($0) }
    }.withoutCoreDataConventions
  }

  /// The structure without the differences between frameworks of different years that mean nothing.
  ///
  /// An index is named by what it covers, and counts once. Indexes on join tables, which older stores lack, are left
  /// out. A join table has the one of its two possible names that the entity with the lower number gives it (section
  /// 4.5).
  var withoutCoreDataConventions: StoreStructure {
    var joins: Set<String> = []
    for table in tables where Self.isJoinTable(table.name) { joins.insert(table.name) }
    var renamed: [Table] = []
    for var table in tables {
      if joins.contains(table.name) {
        table.name = Self.nameByRule(of: table) ?? table.name
        if table.columns.contains(where: { $0.name == CoreDataConventions.reflexiveColumn }) {
          for index in table.columns.indices where Self.isJoinTable(table.columns[index].name) {
            table.columns[index].name = table.name
          }
        }
      }
      renamed.append(table)
    }
    var covered: [Index] = []
    var names: Set<String> = []
    for var index in indexes where !joins.contains(index.table) {
      let columns = index.columns.joined(separator: ", ")
      index.name = "\(index.table)(\(index.isUnique ? "unique " : "")\(columns))"
      // Partial indexes over the same columns can cover different rows.
      if names.insert(index.name).inserted || columns.hasPrefix("(partial)") {
        covered.append(index)
      }
    }
    return StoreStructure(tables: renamed, indexes: covered)
  }

  /// The name that the rule gives a join table; `nil` where its columns do not say.
  ///
  /// Either side may give it: the number of one column's entity with the name of the other's relationship.
  private static func nameByRule(of table: Table) -> String? {
    let keys = table.columns.map(\.name).filter { !$0.hasPrefix("Z_FOK_") && isJoinTable($0) }
    guard keys.count == 2 else { return nil }
    let numbers = keys.map(entityNumber)
    let names = zip(keys, numbers).map { $0.dropFirst(2 + $1.count) }
    let possible = ["Z_\(numbers[0])\(names[1])", "Z_\(numbers[1])\(names[0])"]
    guard possible.contains(table.name) else { return nil }
    if numbers[0] == numbers[1] { return possible.min() }
    // Without leading zeros the longer one is the greater one.
    let isFirst = (numbers[0].utf8.count, numbers[0]) < (numbers[1].utf8.count, numbers[1])
    return isFirst ? possible[0] : possible[1]
  }

  private static func isJoinTable(_ name: String) -> Bool {
    name.hasPrefix("Z_") && !entityNumber(name).isEmpty
  }

  /// The digits behind `Z_`.
  private static func entityNumber(_ name: String) -> String {
    String(name.dropFirst(2).prefix { character in character.isASCII && character.isNumber })
  }
}
