import InstarSchema

/// Makes the schema of a plain store from its tables, as models would describe it.
///
/// Tables show names, declared types, keys, foreign keys, uniqueness and defaults. Where SQLite has no type for a
/// value, a date or a UUID, the first stored value shows it. Whatever no model can describe is left out and survives a
/// change of schema.
struct PlainIntrospection {
  typealias Table = PlainTables.Table
  typealias Column = PlainTables.Column
  typealias ForeignKey = PlainTables.ForeignKey

  private let toolVersions: [ToolVersion]
  var tables: PlainTables
  /// By name, because a large store has many.
  var entities: [String: Schema.Entity] = [:]
  /// The names of an entity's properties, by its name.
  var names: [String: FreeNames] = [:]
  var notes: [String] = []

  init(_ tables: PlainTables, toolVersions: [ToolVersion]) {
    self.toolVersions = toolVersions
    self.tables = tables
  }

  mutating func read(version: Schema.Version) -> StoreIntrospection {
    nameClasses()
    for table in tables.all {
      guard let name = table.entity else { continue }
      entities[name] = entity(of: table, named: name)
    }
    for table in tables.all { addRelationships(of: table) }
    for table in tables.all where table.entity != nil { addIndexes(of: table) }
    noteTheRest()
    let ordered = tables.all.compactMap { $0.entity.flatMap { entities[$0] } }
    return StoreIntrospection(
      origin: .tables, schema: Schema(entities: ordered, version: version), notes: notes)
  }

  // MARK: Classes

  private mutating func nameClasses() {
    var names = FreeNames()
    let links = Set(tables.all.indices.filter { isTableOfLinks(tables.all[$0]) })
    for index in tables.all.indices where !links.contains(index) {
      let table = tables.all[index]
      guard !table.keyColumns.isEmpty else {
        notes.append(
          "table \(table.name) has no model, because it has no primary key; a migration keeps it unchanged"
        )
        continue
      }
      if let column = table.keyColumns.first(where: \.isGenerated) {
        notes.append(
          "table \(table.name) has no model, because \(column.name) of its primary key is a generated column"
        )
        continue
      }
      tables.name(names.take(SQLIdentifier.typeName(table.name)), forTableAt: index)
    }
  }

  /// Whether the table consists of two foreign keys that are its primary key, and nothing else.
  func isTableOfLinks(_ table: Table) -> Bool {
    guard table.linkColumns.count == 2, table.foreignKeys.count == 2,
      table.foreignKeys.allSatisfy({ $0.columns.count == 1 })
    else { return false }
    let own = Set(table.foreignKeys.map { $0.columns[0].own.lowercased() })
    return own.count == 2
      && table.foreignKeys.allSatisfy { key in
        guard let other = tables[key.table], let column = other.keyColumns.first,
          other.keyColumns.count == 1, other.name != table.name
        else { return false }
        return key.columns[0].other.isEmpty
          || key.columns[0].other.lowercased() == column.name.lowercased()
      }
  }

  // MARK: Indexes

  private mutating func addIndexes(of table: Table) {
    guard let name = table.entity, var entity = entities[name] else { return }
    var names: [String: String] = [:]
    for attribute in entity.attributes {
      names[attribute.columnName.lowercased()] = attribute.name
    }
    for index in table.indexes {
      let columns = index.columns.compactMap(\.self)
      guard index.isPlain else {
        if let described = description(of: index, in: table, Set(names.keys)) {
          entity.table?.indexes.append(described)
        }
        continue
      }
      let group = columns.compactMap { names[$0.lowercased()] }
      // An index over a foreign key has no property.
      guard group.count == columns.count else { continue }
      if index.isUnique {
        if !entity.uniquenessConstraints.contains(group) {
          entity.uniquenessConstraints.append(group)
        }
      } else if !entity.indices.contains(group) {
        entity.indices.append(group)
      }
    }
    entities[name] = entity
  }

  /// Returns a partial index, or one over more than ascending columns, as `@Table` declares it. Returns `nil` for one
  /// that an empty store cannot have: its functions and collations may be the app's own, and its columns may have no
  /// property.
  private func description(
    of index: PlainTables.Index, in table: Table, _ described: Set<String>
  ) -> Schema.TableIndex? {
    guard let text = index.text else { return nil }
    let terms = text.terms + [text.condition].compactMap(\.self)
    let tokens = terms.map { SQLToken.tokens(of: $0).filter { $0.kind != .space } }
    let own = Set(table.columns.map { $0.name.lowercased() }).subtracting(described)
    let isKnown = tokens.allSatisfy { tokens in
      zip(tokens, tokens.dropFirst()).allSatisfy { token, next in
        let word = token.kind == .word ? token.name.uppercased() : ""
        if word == "COLLATE" {
          return ["BINARY", "NOCASE", "RTRIM"].contains(next.name.uppercased())
        }
        return next.kind != .open || token.kind != .word
          || ["IN", "AND", "OR", "NOT"].contains(word)
      } && tokens.allSatisfy { !own.contains($0.name.lowercased()) }
    }
    guard isKnown else { return nil }
    return Schema.TableIndex(
      name: index.name, terms: text.terms, isUnique: index.isUnique, condition: text.condition)
  }

  // MARK: The rest

  /// Notes what models do not describe, by its kind.
  private mutating func noteTheRest() {
    for (kind, names) in tables.others {
      let list = names.prefix(10).joined(separator: ", ") + (names.count > 10 ? ", …" : "")
      notes.append("no model describes these \(kind); a migration keeps them: \(list)")
    }
    if !toolVersions.isEmpty {
      let list = toolVersions.map(\.source).joined(separator: ", ")
      notes.append(
        "another migration tool keeps its own version in this store; map it to a version of the plan with importedVersions, for example [\(list): Schema.Version(1, 0, 0)]"
      )
    }
  }
}

extension ToolVersion {
  /// As Swift source in a plan.
  fileprivate var source: String {
    func quoted(_ text: some StringProtocol) -> String { "\"\(text)\"" }
    switch tool {
    case .alembic: return ".alembic(\(quoted(name)))"
    case .django:
      let dot = name.firstIndex(of: ".") ?? name.endIndex
      return ".django(app: \(quoted(name[..<dot])), \(quoted(name[dot...].dropFirst())))"
    case .golangMigrate: return ".golangMigrate(\(name))"
    case .grdb: return ".grdb(\(quoted(name)))"
    case .room: return ".room(identityHash: \(quoted(name)))"
    }
  }
}
