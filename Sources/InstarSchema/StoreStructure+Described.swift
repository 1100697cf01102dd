extension StoreStructure {
  /// Returns the part of a store's structure that some version of the plan names, spelled as in `expected`. In a plain
  /// store all other tables, columns and indexes belong to the app, and survive a migration; a store of the format
  /// `coredata` is described as a whole.
  ///
  /// Names match without regard to case, declared types by their affinity, and indexes by their columns, whatever their
  /// name and whether `CREATE INDEX` or a constraint created them.
  ///
  /// - Parameter known: The structures of all versions of the plan.
  public func described(
    asIn expected: StoreStructure, among known: [StoreStructure], format: StoreFormat = .plain
  ) -> StoreStructure {
    guard format.allowsOtherTables else { return declaringBlobs(asIn: expected) }
    var knownColumns: [String: Set<String>] = [:]
    for table in known.flatMap(\.tables) {
      knownColumns[table.name.lowercased(), default: []]
        .formUnion(table.columns.map { $0.name.lowercased() })
    }
    let spelled = expected.tables.keyed { $0.name.lowercased() }
    let tables = tables.compactMap { table -> Table? in
      guard let columns = knownColumns[table.name.lowercased()] else { return nil }
      let other = spelled[table.name.lowercased()]
      return Table(
        name: other?.name ?? table.name,
        columns: table.columns.filter { columns.contains($0.name.lowercased()) }.map { column in
          guard
            let same = other?.columns.first(where: {
              $0.name.lowercased() == column.name.lowercased()
            })
          else { return column }
          let isAlike =
            same.type == column.type
            || ColumnAffinity(same.type).isLike(ColumnAffinity(column.type))
          return Column(name: same.name, type: isAlike ? same.type : column.type)
        })
    }
    let knownIndexes = Set(known.flatMap(\.indexes).map { $0.name.lowercased() })
    let wanted = expected.indexes.filter { index in indexes.contains { $0.serves(as: index) } }
    let others = indexes.filter { index in
      knownIndexes.contains(index.name.lowercased())
        && !expected.indexes.contains { index.serves(as: $0) }
    }
    return StoreStructure(tables: tables, indexes: wanted + others)
  }
}

extension StoreStructure {
  /// Returns the structure with the type of columns that a version declares as BLOB, and this store without a type.
  private func declaringBlobs(asIn expected: StoreStructure) -> StoreStructure {
    guard tables.contains(where: { $0.columns.contains(where: \.type.isEmpty) }) else {
      return self
    }
    let wanted = expected.tables.keyed(by: \.name).mapValues { $0.columns.keyed(by: \.name) }
    var structure = self
    structure.tables = tables.map { table in
      Table(
        name: table.name,
        columns: table.columns.map { column in
          guard let other = wanted[table.name]?[column.name], column.isUndeclaredBlob(other) else {
            return column
          }
          return other
        })
    }
    return structure
  }
}

extension StoreStructure.Index {
  /// Returns whether this index of a plain store is the one that a version describes.
  public func serves(as other: StoreStructure.Index) -> Bool {
    guard table.lowercased() == other.table.lowercased(), isUnique == other.isUnique else {
      return false
    }
    // The column decides how text is compared, not the index.
    func names(_ columns: [String]) -> [String] {
      columns.map { column in
        let column = column.lowercased()
        return column.firstRange(of: " collate ").map { String(column[..<$0.lowerBound]) } ?? column
      }
    }
    return name.lowercased() == other.name.lowercased() || names(columns) == names(other.columns)
  }
}
