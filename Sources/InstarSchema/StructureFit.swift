/// How the structure of a store fits a version that it is taken for.
///
/// What the version does not speak of can stay: the engine goes by names, and leaves what it does
/// not know. What the version speaks of has to be there, or stages would change what is not.
public struct StructureFit: Sendable, Hashable {
  /// Tables, columns and indexes that the version does not have; a table that it has comes with the
  /// additional columns only.
  public var additions: StoreStructure
  /// Indexes that the version has and the store lacks, and that can be made: those that are not
  /// unique.
  public var missingIndexes: [StoreStructure.Index]
  /// Why the store cannot be taken for that version, one sentence each.
  public var obstacles: [String]

  /// - Parameters:
  ///   - structure: What there is.
  ///   - expected: What a store of the version is made of.
  public init(of structure: StoreStructure, to expected: StoreStructure) {
    var tables: [StoreStructure.Table] = []
    obstacles = []
    let wanted = Dictionary(
      expected.tables.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    let present = Set(structure.tables.map(\.name))
    obstacles += expected.tables.filter { !present.contains($0.name) }
      .map { "table \($0.name) is missing" }
    for table in structure.tables {
      guard let other = wanted[table.name] else {
        tables.append(table)
        continue
      }
      let columns = Dictionary(
        table.columns.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
      for column in other.columns {
        guard let mine = columns[column.name] else {
          obstacles.append("column \(table.name).\(column.name) is missing")
          continue
        }
        if mine.type != column.type {
          obstacles.append(
            "column \(table.name).\(column.name) is declared \(mine.type), not \(column.type)")
        }
      }
      let names = Set(other.columns.map(\.name))
      let additional = table.columns.filter { !names.contains($0.name) }
      if !additional.isEmpty { tables.append(.init(name: table.name, columns: additional)) }
    }

    missingIndexes = []
    let indexes = Dictionary(
      structure.indexes.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    for index in expected.indexes {
      if let mine = indexes[index.name] {
        if mine != index { obstacles.append("index \(index.name) is defined otherwise") }
      } else if index.isUnique {
        obstacles.append("unique index \(index.name) is missing: there may be duplicates")
      } else {
        missingIndexes.append(index)
      }
    }
    let indexNames = Set(expected.indexes.map(\.name))
    additions = StoreStructure(
      tables: tables, indexes: structure.indexes.filter { !indexNames.contains($0.name) })
  }

  /// Whether the store has all that the version has.
  public var lacksNothing: Bool { obstacles.isEmpty && missingIndexes.isEmpty }

  /// Whether the store is built exactly like the version.
  public var isExact: Bool {
    lacksNothing && additions.tables.isEmpty && additions.indexes.isEmpty
  }

  /// What becomes of the differences that are no obstacles, one sentence each.
  public func consequences(in expected: StoreStructure) -> [String] {
    let known = Set(expected.tables.map(\.name))
    var sentences: [String] = []
    for table in additions.tables {
      if known.contains(table.name) {
        sentences += table.columns.map {
          "column \(table.name).\($0.name) is not expected: it stays"
        }
      } else {
        sentences.append("table \(table.name) is not expected: it stays")
      }
    }
    sentences += additions.indexes.map { "index \($0.name) is not expected: it stays" }
    sentences += missingIndexes.map { "index \($0.name) is missing: it is made" }
    return sentences
  }
}

extension StoreStructure {
  /// This structure with what a store has beside it. What both have is as it is here.
  public func adding(_ additions: StoreStructure) -> StoreStructure {
    var byName = Dictionary(tables.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
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
