/// Whether a store can be adopted as a version, judged by its structure.
///
/// Tables, columns and indexes that the version does not name can stay: a change of schema works by names and leaves
/// others alone. Those that the version names must exist, or a stage would change something that is missing.
public struct StructureFit: Sendable, Hashable {
  /// Tables, columns and indexes that only the store has. A table that the version has too is listed with its
  /// additional columns only.
  public var additions: StoreStructure
  /// Indexes that the store lacks and that Instar can create: those that are not unique.
  public var missingIndexes: [StoreStructure.Index]
  /// The declared types of the store's columns, by "table.column", that are not those of the version. Each is an
  /// obstacle.
  public var retypedColumns: [String: String] = [:]
  /// The reasons why the store cannot be adopted as the version, one sentence each.
  public var obstacles: [String]

  /// - Parameters:
  ///   - structure: The store's structure.
  ///   - expected: The version's structure.
  public init(of structure: StoreStructure, to expected: StoreStructure) {
    var tables: [StoreStructure.Table] = []
    obstacles = []
    let wanted = expected.tables.keyed(by: \.name)
    let present = Set(structure.tables.map(\.name))
    obstacles += expected.tables.filter { !present.contains($0.name) }
      .map { "table \($0.name) is missing" }
    for table in structure.tables {
      guard let other = wanted[table.name] else {
        tables.append(table)
        continue
      }
      let columns = table.columns.keyed(by: \.name)
      for column in other.columns {
        guard let mine = columns[column.name] else {
          obstacles.append("column \(table.name).\(column.name) is missing")
          continue
        }
        if let difference = mine.difference(from: column, in: table.name) {
          obstacles.append(difference)
          retypedColumns["\(table.name).\(column.name)"] = mine.type
        }
      }
      let names = Set(other.columns.map(\.name))
      let additional = table.columns.filter { !names.contains($0.name) }
      if !additional.isEmpty { tables.append(.init(name: table.name, columns: additional)) }
    }

    missingIndexes = []
    let indexes = structure.indexes.keyed(by: \.name)
    for index in expected.indexes {
      if let mine = indexes[index.name] {
        if mine != index { obstacles.append("index \(index.name) has a different definition") }
      } else if index.isUnique {
        obstacles.append("unique index \(index.name) is missing, so values may repeat")
      } else {
        missingIndexes.append(index)
      }
    }
    let indexNames = Set(expected.indexes.map(\.name))
    additions = StoreStructure(
      tables: tables, indexes: structure.indexes.filter { !indexNames.contains($0.name) })
  }

  /// Whether the store has everything that the version has.
  public var lacksNothing: Bool { obstacles.isEmpty && missingIndexes.isEmpty }

  /// Whether the store has exactly the structure of the version.
  public var isExact: Bool {
    lacksNothing && additions.tables.isEmpty && additions.indexes.isEmpty
  }

  /// Returns what an adoption does about each difference that does not prevent it, one sentence each.
  public func consequences(in expected: StoreStructure) -> [String] {
    let known = Set(expected.tables.map(\.name))
    var sentences: [String] = []
    for table in additions.tables {
      if known.contains(table.name) {
        sentences += table.columns.map {
          "column \(table.name).\($0.name) is not expected; Instar keeps it"
        }
      } else {
        sentences.append("table \(table.name) is not expected; Instar keeps it")
      }
    }
    sentences += additions.indexes.map { "index \($0.name) is not expected; Instar keeps it" }
    sentences += missingIndexes.map { "index \($0.name) is missing; Instar creates it" }
    return sentences
  }
}

extension StoreStructure {
  /// Returns this structure with the tables, columns and indexes that only `additions` has.
  public func adding(_ additions: StoreStructure) -> StoreStructure {
    var byName = tables.keyed(by: \.name)
    for table in additions.tables {
      guard let mine = byName[table.name] else {
        byName[table.name] = table
        continue
      }
      let names = Set(mine.columns.map(\.name))
      byName[table.name] = Table(
        name: table.name,
        columns: mine.columns + table.columns.filter { !names.contains($0.name) })
    }
    let names = Set(indexes.map(\.name))
    return StoreStructure(
      tables: Array(byName.values),
      indexes: indexes + additions.indexes.filter { !names.contains($0.name) })
  }
}
