/// The tables and indexes of a store or version, without those that the format needs for itself.
///
/// Two structures are equal when they name the same tables, columns, declared types and indexes. The order of columns
/// does not count: SQLite appends an added column, and readers use names.
public struct StoreStructure: Sendable, Codable, Hashable {
  /// Ordered by name.
  public var tables: [Table]
  /// Ordered by name.
  public var indexes: [Index]

  /// A structure of these tables and indexes, in any order.
  public init(tables: [Table], indexes: [Index]) {
    self.tables = tables.sorted { $0.name < $1.name }
    self.indexes = indexes.sorted { $0.name < $1.name }
  }

  /// A table and its columns.
  public struct Table: Sendable, Codable, Hashable {
    /// As the store's `CREATE TABLE` names it.
    public var name: String
    /// Ordered by name.
    public var columns: [Column]

    /// A table with these columns, in any order.
    public init(name: String, columns: [Column]) {
      self.name = name
      self.columns = columns.sorted { $0.name < $1.name }
    }
  }

  /// A column and its declared type.
  public struct Column: Sendable, Codable, Hashable {
    /// As the table declares it.
    public var name: String
    /// As the table declares it, for example `VARCHAR`.
    public var type: String

    /// A column with its declared type.
    public init(name: String, type: String) {
      self.name = name
      self.type = type
    }

    /// Returns how the declared type differs from that of a version, as a sentence; `nil` where it does not.
    func difference(from wanted: Column, in table: String) -> String? {
      if type == wanted.type || isUndeclaredBlob(wanted) { return nil }
      func phrase(_ type: String) -> String { type.isEmpty ? "without a type" : type }
      return "column \(table).\(name) is declared \(phrase(type)), not \(phrase(wanted.type))"
    }

    /// Whether this column has no declared type, and a version declares it as BLOB: SQLite treats both in one way.
    func isUndeclaredBlob(_ wanted: Column) -> Bool { type.isEmpty && wanted.type == "BLOB" }
  }

  /// An index and what it covers.
  public struct Index: Sendable, Codable, Hashable {
    /// As the store names it; SQLite names those of constraints.
    public var name: String
    /// The name of the table that it covers.
    public var table: String
    /// Whether SQLite refuses rows with equal columns.
    public var isUnique: Bool
    /// In the order of the index.
    public var columns: [String]

    /// An index over columns of one table.
    public init(name: String, table: String, isUnique: Bool, columns: [String]) {
      self.name = name
      self.table = table
      self.isUnique = isUnique
      self.columns = columns
    }
  }

  /// One line per table, column and index, in a fixed order: the text that the fingerprint hashes.
  public var canonicalText: String {
    var lines: [String] = []
    for table in tables {
      lines.append("table \(table.name)")
      lines += table.columns.map { "column \(table.name).\($0.name) \($0.type)" }
    }
    lines += indexes.map {
      "\($0.isUnique ? "unique index" : "index") \($0.name) \($0.table)(\($0.columns.joined(separator: ",")))"
    }
    return lines.joined(separator: "\n")
  }

  /// Returns how this structure differs from `expected`, one sentence each.
  public func differences(from expected: StoreStructure) -> [String] {
    var sentences: [String] = []
    let mine = tables.keyed(by: \.name)
    let theirs = expected.tables.keyed(by: \.name)
    for table in expected.tables where mine[table.name] == nil {
      sentences.append("table \(table.name) is missing")
    }
    for table in tables {
      guard let other = theirs[table.name] else {
        sentences.append("table \(table.name) is not expected")
        continue
      }
      for column in other.columns where !table.columns.contains(where: { $0.name == column.name }) {
        sentences.append("column \(table.name).\(column.name) is missing")
      }
      for column in table.columns {
        guard let wanted = other.columns.first(where: { $0.name == column.name }) else {
          sentences.append("column \(table.name).\(column.name) is not expected")
          continue
        }
        if let difference = column.difference(from: wanted, in: table.name) {
          sentences.append(difference)
        }
      }
    }
    let myIndexes = Set(indexes)
    let theirIndexes = Set(expected.indexes)
    for index in expected.indexes where !myIndexes.contains(index) {
      sentences.append(
        indexes.contains { $0.name == index.name }
          ? "index \(index.name) has a different definition" : "index \(index.name) is missing")
    }
    for index in indexes
    where !theirIndexes.contains(index)
      && !expected.indexes.contains(where: { $0.name == index.name })
    {
      sentences.append("index \(index.name) is not expected")
    }
    return sentences
  }
}
