import InstarSchema
import InstarStore

/// Rebuilds one table that `ALTER TABLE` cannot change, from its own SQL text and with all of its rows and rowids.
///
/// SQLite's procedure (https://www.sqlite.org/lang_altertable.html, section 7), step by step beside the code:
///
/// 1. "If foreign key constraints are enabled, disable them": the executor does, before
/// 2. "Start a transaction", which holds the whole change of schema.
/// 3. "Remember the format of all indexes, triggers, and views associated with table X."
/// 4. "Use CREATE TABLE to construct a new table new_X that is in the desired revised format of table X."
/// 5. "Transfer content from X into new_X."
/// 6. "Drop the old table X."
/// 7. "Change the name of new_X to X using ALTER TABLE new_X RENAME TO X."
/// 8. "Use CREATE INDEX, CREATE TRIGGER … to reconstruct indexes, triggers, and views associated with table X."
/// 9. "If any views refer to table X in a way that is affected by the schema change, then drop those views … and
///    recreate them": columns were renamed by `ALTER TABLE` before, which rewrote the views. The executor refuses
///    views that name a removed column.
/// 10. "run PRAGMA foreign_key_check": the executor.
/// 11. "Commit": the executor. 12. The next context enables foreign keys again.
struct TableRebuild {
  let pair: PlainSchemaChange.TablePair
  let old: PlainLayout
  let new: PlainLayout
  let difference: SchemaDifference
  let carriedValues: CarriedValues
  let text: CreateTableText
  /// The columns to drop, by their present names.
  let removed: [String]
  /// The groups of columns whose `UNIQUE` constraint is removed.
  let uniqueColumns: [[String]]

  private var name: String { pair.new.name }

  // MARK: Whether a rebuild is needed

  /// Whether SQLite cannot alter the table: it adds columns at the end only, and drops no column that anything else
  /// uses.
  var isNeeded: Bool {
    !changed.isEmpty || !pair.converted.isEmpty || !uniqueColumns.isEmpty || hasOtherKey
      || hasOtherOptions
      || removedChecks != addedChecks
      || !pair.added.allSatisfy(canBeAdded) || !removed.allSatisfy(canBeDropped)
      || hasNewCompositeReference
  }

  /// Columns that both versions have, with different declarations.
  private var changed: [(old: PlainLayout.Column, new: PlainLayout.Column)] {
    pair.kept.filter { old, new in
      // The key stays the same column when a property for it is added or removed.
      if old.role == .hiddenKey || new.role == .hiddenKey { return false }
      if pair.converted.contains(new.name) { return true }
      return old.declaration != new.declaration || old.encoding != new.encoding
    }
  }

  private var hasOtherKey: Bool {
    let names = Dictionary(firstOf: pair.kept.map { ($0.old.name, $0.new.name) })
    return pair.old.primaryKey.map { names[$0] ?? "" } != pair.new.primaryKey
  }

  private var hasOtherOptions: Bool {
    pair.old.isStrict != pair.new.isStrict || pair.old.isWithoutRowID != pair.new.isWithoutRowID
  }

  private func checks(of entity: String?, _ layout: PlainLayout) -> [String] {
    entity.flatMap { layout.schema.entity(named: $0)?.table?.checks } ?? []
  }

  private var oldChecks: [String] { checks(of: pair.old.entity, old) }
  private var newChecks: [String] { checks(of: pair.new.entity, new) }
  private var removedChecks: [String] { oldChecks.filter { !newChecks.contains($0) } }
  private var addedChecks: [String] { newChecks.filter { !oldChecks.contains($0) } }

  private var newReferences: [String] {
    let added = Set(pair.added.map { $0.name.lowercased() }).union(redirected)
    return pair.new.constraints.filter { constraint in
      let item = CreateTableText.Item(constraint)
      return item.words.first == "FOREIGN" && item.listed.contains(where: added.contains)
    }
  }

  /// The columns of references that one of the two versions declares differently, or does not have, in lower case.
  private var redirected: Set<String> {
    Set(
      changed.filter { old, new in
        (old.role.isReference || new.role.isReference) && Self.clauses(old) != Self.clauses(new)
      }
      .map { $0.new.name.lowercased() })
  }

  /// What a column declares after its type, without NOT NULL.
  private static func clauses(_ column: PlainLayout.Column) -> String {
    let rest = column.declaration.dropFirst(column.type.count)
    return rest.hasPrefix(" NOT NULL") ? String(rest.dropFirst(9)) : String(rest)
  }

  private var hasNewCompositeReference: Bool { !newReferences.isEmpty }

  /// https://www.sqlite.org/lang_altertable.html, section 4.
  private func canBeAdded(_ column: PlainLayout.Column) -> Bool {
    if pair.new.primaryKey.contains(column.name) { return false }
    if column.isGenerated { return !column.definition.hasSuffix("STORED") }
    guard let value = column.defaultValue else { return !column.isRequired }
    let first = value.first ?? "("
    let isConstant = first != "(" && !value.uppercased().hasPrefix("CURRENT_")
    return isConstant && !(column.isRequired && value.uppercased() == "NULL")
  }

  /// The same page, section 5.
  private func canBeDropped(_ column: String) -> Bool {
    guard let index = text.index(ofColumn: column) else { return false }
    let item = text.items[index]
    if item.isUnique || item.words.contains("REFERENCES") { return false }
    return text.items.enumerated().allSatisfy { position, other in
      position == index || !other.names.contains(column.lowercased())
    }
  }

  // MARK: The new text

  /// Refuses to drop a column that a column or constraint uses which no model describes.
  func requireFreeColumns() throws {
    try requireKnownReferences()
    let gone = Set(removed.map { $0.lowercased() })
    let described = Set(removedChecks.map { CreateTableText.Item("CHECK (\($0))").normalized })
    for item in text.items where !gone.isDisjoint(with: item.names) {
      if let column = item.column {
        if gone.contains(column.lowercased()) { continue }
        if let new = pair.new.columns.first(where: { $0.name == column }),
          changed.contains(where: { $0.new.name == new.name })
        {
          continue
        }
      } else {
        if item.words.contains("FOREIGN") || item.words.contains("UNIQUE") { continue }
        if item.words.contains("PRIMARY"), hasOtherKey { continue }
        if described.contains(item.normalized) { continue }
      }
      let subject = item.column.map { "column '\($0)'" } ?? "a constraint"
      throw InstarError(
        .needsCustomStage, "cannot change table \(name)",
        cause:
          "the stage removes \(removed.joined(separator: ", ")), which \(subject) of \(name) uses: "
          + item.normalized,
        next: "describe it in the models of the new version")
    }
  }

  /// Refuses to change a column with a foreign key that no model describes.
  private func requireKnownReferences() throws {
    for (old, new) in changed where Self.clauses(old) != Self.clauses(new) {
      if old.role.isReference || new.role.isReference { continue }
      guard let index = text.index(ofColumn: new.name),
        text.items[index].words.contains("REFERENCES")
      else { continue }
      throw InstarError(
        .needsCustomStage, "cannot change table \(name)",
        cause: "the stage changes column '\(new.name)', which has a foreign key that no model "
          + "describes: \(text.items[index].normalized)",
        next: "describe the foreign key as a relationship in both versions")
    }
  }

  /// Refuses changes of type that nobody could undo: of a primary key, which keys elsewhere refer to, and of a column
  /// with a default that its new type cannot have.
  func requireConvertibleColumns() throws {
    for (old, new) in changed where pair.converted.contains(new.name) {
      let types = "from \(old.type) to \(new.type)"
      if pair.old.primaryKey.contains(old.name) || pair.new.primaryKey.contains(new.name) {
        throw InstarError(
          .needsCustomStage, "cannot change table \(name)",
          cause:
            "the stage changes the type of '\(new.name)' \(types), which is part of the primary key: "
            + "the rows would lose their keys",
          next:
            "add a model with the new key and its own table, let didMigrate insert its rows, and remove "
            + "the old model in the next version")
      }
      guard let index = text.index(ofColumn: new.name),
        let value = undescribedDefault(text.items[index], old, new),
        new.encoding != nil || !Self.fits(value, new.type)
      else { continue }
      throw InstarError(
        .needsCustomStage, "cannot change table \(name)",
        cause:
          "the stage changes the type of column '\(new.name)' \(types), whose DEFAULT \(value) no model "
          + "describes and the new type cannot have",
        next: "declare a default in the new version: @Column(.default(\"…\"))")
    }
  }

  /// The default that only the store's own table declares.
  private func undescribedDefault(
    _ item: CreateTableText.Item, _ old: PlainLayout.Column, _ new: PlainLayout.Column
  ) -> String? {
    guard old.defaultValue == nil, new.defaultValue == nil,
      let value = item.defaultValue, value.uppercased() != "NULL"
    else { return nil }
    return value
  }

  /// Whether a default is a literal of the kind that a declared type holds.
  private static func fits(_ value: String, _ type: String) -> Bool {
    let affinity = ColumnAffinity(type)
    if Int64(value) != nil { return affinity != .text && affinity != .blob }
    if Double(value) != nil { return affinity == .real || affinity == .numeric }
    return value.first == "'" && affinity == .text
  }

  /// Returns the error of a step, with what to do where a constraint of the store's own refuses a row.
  func explained(_ error: InstarError) -> InstarError {
    guard !pair.converted.isEmpty, error.cause.contains("constraint failed") else { return error }
    var error = error
    error.next =
      error.next
      ?? "let willMigrate write values whose converted form meets the constraint; or let the app drop it before "
      + "the migration"
    return error
  }

  private func newText() -> CreateTableText {
    var text = text
    let redirected = redirected
    let gone = Set(removed.map { $0.lowercased() })
    text.items.removeAll { item in
      if let column = item.column { return gone.contains(column.lowercased()) }
      if item.words.contains("FOREIGN"), !redirected.isDisjoint(with: item.listed) { return true }
      if item.words.contains("FOREIGN") || item.words.contains("UNIQUE") {
        if item.listed.contains(where: gone.contains) { return true }
      }
      if item.words.contains("PRIMARY") { return hasOtherKey }
      return item.words.contains("UNIQUE")
        && uniqueColumns.contains { $0.map { $0.lowercased() } == item.listed }
    }
    for columns in uniqueColumns where columns.count == 1 {
      if let index = text.index(ofColumn: columns[0]) {
        text.items[index] = text.items[index].removing("UNIQUE")
      }
    }
    let descriptions = removedChecks.map { CreateTableText.Item("CHECK (\($0))").normalized }
    text.items.removeAll { $0.column == nil && descriptions.contains($0.normalized) }
    for (old, new) in changed {
      guard let index = text.index(ofColumn: new.name) else { continue }
      text.items[index] = redefined(text.items[index], old, new)
    }
    if hasOtherKey {
      // A column that was or becomes a key loses the PRIMARY KEY of its own declaration.
      for (old, new) in pair.kept
      where pair.old.primaryKey.contains(old.name) || pair.new.primaryKey.contains(new.name) {
        guard let index = text.index(ofColumn: new.name) else { continue }
        text.items[index] = CreateTableText.Item("\n  \(new.definition)")
      }
    }
    for column in pair.added { text.append(column: column.definition) }
    if hasOtherKey {
      for constraint in pair.new.constraints where constraint.hasPrefix("PRIMARY KEY") {
        text.items.append(CreateTableText.Item("\n  \(constraint)"))
      }
    }
    for reference in newReferences { text.items.append(CreateTableText.Item("\n  \(reference)")) }
    for check in addedChecks {
      text.items.append(CreateTableText.Item("\n  CHECK (\(check))"))
    }
    if hasOtherOptions {
      let options = [(pair.new.isWithoutRowID, "WITHOUT ROWID"), (pair.new.isStrict, "STRICT")]
        .filter(\.0).map(\.1).joined(separator: ", ")
      text.suffix = options.isEmpty ? "" : " \(options)"
    }
    return text
  }

  /// A column as the new version declares it. Where only its type or NOT NULL changes, the rest of its text stays; so
  /// do, in any case, clauses that no model describes.
  private func redefined(
    _ item: CreateTableText.Item, _ old: PlainLayout.Column, _ new: PlainLayout.Column
  ) -> CreateTableText.Item {
    let isConverted = pair.converted.contains(new.name)
    if Self.clauses(old) == Self.clauses(new) {
      var item = item.required(new.isRequired)
      if isConverted {
        item = item.withDefault(new.defaultValue ?? undescribedDefault(item, old, new))
      }
      return old.type == new.type ? item : item.declared(as: new.type)
    }
    let space = item.text.prefix { $0.isWhitespace }
    var definition = new.definition
    for keyword in ["COLLATE", "CHECK"] {
      let described = CreateTableText.Item(old.definition).clauses(keyword)
      let isDescribed = !CreateTableText.Item(new.definition).clauses(keyword).isEmpty
      if described.isEmpty, !isDescribed {
        definition += item.clauses(keyword).map { " \($0)" }.joined()
      }
    }
    if let value = undescribedDefault(item, old, new) { definition += " DEFAULT \(value)" }
    // A UNIQUE that the models no longer declare was removed before.
    if item.words.contains("UNIQUE"), !CreateTableText.Item(definition).isUnique {
      definition += " UNIQUE"
    }
    return CreateTableText.Item(space + definition)
  }

  // MARK: The statements

  func steps(_ session: SQLSession) throws -> [ChangeStep] {
    // 3. Remember the format of all indexes and triggers.
    let objects = try session.objects(of: name)
    let table = SQLIdentifier.sql(name)
    let newName = try session.freeName("instar_new_\(name)")
    let newTable = SQLIdentifier.sql(newName)
    let newText = newText()
    var steps: [ChangeStep] = []
    func add(_ sql: String, _ comment: String) {
      steps.append(
        ChangeStep(
          sql, comment, .rebuild, rowChange: .writes, table: name,
          reason: "rebuilds table \(name), which ALTER TABLE cannot change"))
    }
    // 4. The new table.
    add(newText.statement(named: newName), "creates the new \(name)")
    // 5. Its rows, with their rowids.
    let transfers = transfers(newText)
    let keepsRowIDs = !isWithoutRowID(text) && !isWithoutRowID(newText)
    var columns = transfers.map(\.column)
    var values = transfers.map(\.value)
    if keepsRowIDs, !hasRowIDColumn(newText) {
      columns.insert("rowid", at: 0)
      values.insert("rowid", at: 0)
    }
    add(
      "INSERT INTO \(newTable) (\(columns.joined(separator: ", "))) "
        + "SELECT \(values.joined(separator: ", ")) FROM \(table)", copyComment(newText))
    if newText.items.contains(where: { $0.words.contains("AUTOINCREMENT") }),
      try session.integer("SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_sequence'") != nil
    {
      // AUTOINCREMENT never uses a key twice, even if its row was deleted.
      let (old, new) = (AttributeValue.text(name).literal, AttributeValue.text(newName).literal)
      add("DELETE FROM sqlite_sequence WHERE name = \(new)", "clears the counter of the new table")
      add(
        "INSERT INTO sqlite_sequence (name, seq) "
          + "SELECT \(new), seq FROM sqlite_sequence WHERE name = \(old) COLLATE NOCASE",
        "keeps the highest key")
    }
    // SQLite would drop what ANALYZE found together with the old table. The planner of the app's queries needs it.
    let statistics = try statisticsTables(session)
    for kept in statistics { add(Self.move(kept, from: name, to: newName), "keeps the statistics") }
    // 6. The old table.
    add("DROP TABLE \(table)", "drops the old \(name)")
    // 7. Rename the new table, by the rules before SQLite 3.26: views, triggers and foreign keys of other tables name
    //    X all the time and must stay unchanged.
    add("PRAGMA legacy_alter_table = ON", "keeps references to \(name) unchanged")
    add("ALTER TABLE \(newTable) RENAME TO \(table)", "renames the new table to \(name)")
    add("PRAGMA legacy_alter_table = OFF", "ends the special rule")
    // 8. Indexes and triggers, by their own SQL.
    for object in objects where object.type != "table" {
      if let sql = object.sql { add(sql, "restores \(object.type) \(object.name)") }
    }
    for kept in statistics {
      add(Self.move(kept, from: newName, to: name), "restores the statistics")
    }
    return steps
  }

  /// Names the checks that converted values have to meet: a preview has no rows on which SQLite would apply them.
  private func copyComment(_ text: CreateTableText) -> String {
    let converted = Set(pair.converted.map { $0.lowercased() })
    let checks = text.items.filter { !converted.isDisjoint(with: $0.names) }
      .flatMap { $0.clauses("CHECK") }
    if checks.isEmpty { return "copies the rows" }
    return "copies the rows; the run fails if converted values do not meet "
      + checks.joined(separator: " and ")
  }

  /// The tables with the results of ANALYZE. Where the indexes of constraints change, they get the names of others, and
  /// the results would be wrong.
  private func statisticsTables(_ session: SQLSession) throws -> [String] {
    if hasOtherKey || !uniqueColumns.isEmpty { return [] }
    return try session.texts(
      "SELECT name FROM sqlite_schema WHERE name IN ('sqlite_stat1', 'sqlite_stat4')")
  }

  private static func move(_ table: String, from: String, to: String) -> String {
    "UPDATE \(table) SET tbl = \(AttributeValue.text(to).literal) "
      + "WHERE tbl = \(AttributeValue.text(from).literal) COLLATE NOCASE"
  }

  private func isWithoutRowID(_ text: CreateTableText) -> Bool {
    text.suffix.uppercased().contains("WITHOUT")
  }

  /// Whether a column is the rowid, or only has its name.
  private func hasRowIDColumn(_ text: CreateTableText) -> Bool {
    let isKey = text.items.contains { item in
      item.column != nil && item.words.contains("PRIMARY") && item.isRowIDAsKey
    }
    let isListed = text.items.contains { item in
      guard item.column == nil, item.words.contains("PRIMARY"), item.listed.count == 1,
        let index = text.index(ofColumn: item.listed[0])
      else { return false }
      return text.items[index].isRowIDAsKey
    }
    return isKey || isListed || text.index(ofColumn: "rowid") != nil
  }

  /// The expression that fills each column of the new table.
  private func transfers(_ text: CreateTableText) -> [(column: String, value: String)] {
    text.items.compactMap { item in
      guard let name = item.column, !item.isGenerated else { return nil }
      let sqlName = SQLIdentifier.sql(name)
      guard
        let position = pair.new.columns.firstIndex(where: {
          $0.name.lowercased() == name.lowercased()
        })
      else { return (sqlName, sqlName) }
      let column = pair.new.columns[position]
      if column.isRequired, let value = computedValue(column) { return (sqlName, value) }
      if pair.converted.contains(column.name) {
        let values = [carriedValue(column), column.isRequired ? fill(column) : nil]
          .compactMap(\.self)
        if values.count == 2 { return (sqlName, "coalesce(\(values[0]), \(values[1]))") }
        return (sqlName, values.first ?? "NULL")
      }
      guard let source = pair.sources[position] else {
        return (computedValue(column) ?? fill(column)).map { (sqlName, $0) }
      }
      var value = sqlName
      if source.encoding != column.encoding {
        if let encoding = source.encoding { value = "\(encoding.readFunction)(\(value))" }
        if let encoding = column.encoding { value = "\(encoding.writeFunction)(\(value))" }
      }
      if column.isRequired, !source.isRequired, let fill = fill(column) {
        value = "ifnull(\(value), \(fill))"
      }
      return (sqlName, value)
    }
  }

  /// The value of a column that has its values from a column of another type; `nil` where no value converts.
  func carriedValue(_ column: PlainLayout.Column) -> String? {
    carriedValues.value(of: SQLIdentifier.sql(column.name), inTable: SQLIdentifier.sql(name))
  }

  /// The value that a transform of the plan computed for a column; `nil` for none.
  func computedValue(_ column: PlainLayout.Column) -> String? {
    carriedValues.computed.value(
      of: SQLIdentifier.sql(column.name), inTable: SQLIdentifier.sql(name))
  }

  /// The value of a required column in rows that have none: its default, or the property's initial value. Also that of
  /// a new column of a composite.
  func fill(_ column: PlainLayout.Column) -> String? {
    guard column.isRequired else { return column.defaultValue ?? compositeFill(column) }
    if let value = column.defaultValue { return value }
    guard case .attribute(let name) = column.role,
      let value = pair.new.entity.flatMap({ new.schema.entity(named: $0) })?.attributes
        .first(where: { $0.name == name })?.storedDefault
    else { return nil }
    return (column.encoding?.written(value) ?? value).literal
  }

  /// The part of a new composite's initial value that a column gets in existing rows; `nil` for none.
  func compositeFill(_ column: PlainLayout.Column) -> String? {
    guard case .attribute(let name) = column.role,
      let mapping = difference.entities.first(where: { $0.new.name == pair.new.entity }),
      let attribute = mapping.attributes.first(where: { $0.new.name == name })?.new,
      let value = difference.initialValue(of: attribute, in: mapping)
    else { return nil }
    return (column.encoding?.written(value) ?? value).literal
  }
}

extension PlainLayout.Column.Role {
  fileprivate var isReference: Bool {
    if case .reference = self { return true }
    return false
  }
}
