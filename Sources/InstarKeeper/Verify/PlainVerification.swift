internal import InstarSchema
internal import InstarStore

// The checks of plain stores: what no model describes must be unchanged.

extension CloneVerification {
  /// The structures of all versions of the path.
  func structures() throws(InstarError) -> [StoreStructure] {
    var structures: [StoreStructure] = []
    for schema in path.schemas { structures.append(try schema.layout().structure) }
    return structures
  }

  /// The names of tables and columns before and after renames.
  func renames() throws(InstarError) -> (old: Set<String>, new: Set<String>) {
    func names(_ structures: [StoreStructure]) -> Set<String> {
      Set(
        structures.flatMap(\.tables)
          .flatMap { [$0.name] + $0.columns.map(\.name) }.map { $0.lowercased() })
    }
    let structures = try structures()
    return (names(Array(structures.dropLast())), names(Array(structures.dropFirst())))
  }

  /// Tables, columns and indexes that no version describes must still exist, unless code of the plan removed them.
  func requireUndescribed(_ structure: StoreStructure) throws {
    guard path.isLightweight, layout.format.allowsOtherTables else { return }
    let known = try structures()
    let described = Set(known.flatMap(\.tables).map { $0.name.lowercased() })
    for table in before.structure.tables {
      let name = table.name.lowercased()
      if described.contains(name) {
        let columns = Set(
          known.flatMap(\.tables).filter { $0.name.lowercased() == name }.flatMap(\.columns)
            .map { $0.name.lowercased() })
        // The plan may have renamed or removed the table.
        guard let now = structure.tables.first(where: { $0.name.lowercased() == name }) else {
          continue
        }
        for column in table.columns
        where !columns.contains(column.name.lowercased()) && !now.columns.contains(column) {
          throw Self.failed(
            "column \(table.name).\(column.name) is gone, although no model describes it")
        }
      } else if !structure.tables.contains(table) {
        throw Self.failed(
          "table \(table.name) is gone or changed, although no model describes it")
      }
    }
    try requireUndescribedIndexes(structure, known)
  }

  /// The columns, by table, that some but not all versions of the path have, in lower case.
  private func passingColumns(_ known: [StoreStructure]) -> [String: Set<String>] {
    let versions = Dictionary(grouping: known.flatMap(\.tables)) { $0.name.lowercased() }
      .mapValues { tables in tables.map { Set($0.columns.map { $0.name.lowercased() }) } }
    return versions.mapValues { versions in
      let all = versions.reduce(into: Set<String>()) { $0.formUnion($1) }
      return all.subtracting(versions.reduce(all) { $0.intersection($1) })
    }
  }

  /// An index is removed with a column that it covers, also where a later version has a column of that name again. The
  /// columns of an index over expressions are not known here.
  private func requireUndescribedIndexes(
    _ structure: StoreStructure, _ known: [StoreStructure]
  ) throws {
    let passing = passingColumns(known)
    let columns = Dictionary(
      structure.tables.map { ($0.name.lowercased(), Set($0.columns.map { $0.name.lowercased() })) },
      uniquingKeysWith: { first, _ in first })
    let described = Dictionary(grouping: known.flatMap(\.indexes)) { $0.table.lowercased() }
    let present = Dictionary(grouping: structure.indexes) { $0.table.lowercased() }
    for index in before.structure.indexes {
      let table = index.table.lowercased()
      guard let columns = columns[table],
        columns.isSuperset(of: index.columns.map { $0.lowercased() }),
        passing[table]?.isDisjoint(with: index.columns.map { $0.lowercased() }) != false,
        described[table]?.contains(where: { index.serves(as: $0) }) != true,
        present[table]?.contains(where: { $0.serves(as: index) }) != true
      else { continue }
      throw Self.failed("index \(index.name) is gone, although no model describes it")
    }
  }

  /// Checks the rows of tables that no model describes, and the foreign keys of all tables.
  func requireOthers(_ after: StoreCensus) throws {
    if let now = after.violations, let earlier = before.census.violations, now > earlier {
      throw InstarError(
        .brokenReferences, Self.what,
        cause: "\(now) rows violate a foreign key; before the run \(earlier) did",
        next: "correct the rows in didMigrate; PRAGMA foreign_key_check lists them")
    }
    guard path.isLightweight else { return }
    for (table, earlier) in before.census.otherRows.sorted(by: { $0.key < $1.key }) {
      guard let now = after.otherRows[table], now != earlier else { continue }
      throw InstarError(
        .rowsLost, Self.what,
        cause: "table \(table) had \(earlier) rows and has \(now), although no stage runs code")
    }
  }
}
