import InstarSchema
import InstarStore

/// Changes the schema of an open store of the Core Data format by one stage, in one transaction, and checks the result.
struct CoreDataChangeExecutor {
  let stage: SchemaStage
  let difference: SchemaDifference
  let searchIndexes: SearchIndexRebuild
  var steps: [ChangeStep] = []

  /// - Returns: every statement that was executed, in order.
  /// - Throws: `unexpectedStructure` where the store does not end with the new version's structure; the error of a
  ///   check of rows; the first error of a statement. The store is then in any state.
  func run(_ session: SQLSession) throws -> [ChangeStep] {
    let conventions = try CoreDataConventions(of: session.database)
    let old = try stage.from.coreDataLayout(conventions)
    let new = try stage.to.coreDataLayout(old.conventions(after: difference))
    try CoreDataRowCheck.check(stage, difference, old, session)
    var work = self
    try work.change(session, old, new)
    return work.steps
  }

  private mutating func execute(_ session: SQLSession, _ step: ChangeStep) throws {
    try searchIndexes.prepare(for: step)
    try session.run(step.sql, on: step.table)
    steps.append(step)
  }

  private mutating func change(
    _ session: SQLSession, _ old: CoreDataLayout, _ new: CoreDataLayout
  ) throws {
    let triggers = try DerivedTriggers(of: session, from: old, to: new, difference)
    let fit = StructureFit(
      of: try StoreStructure.read(session.database, format: .coredata), to: old.structure)
    let additions = fit.additions
    let isFresh =
      try !old.conventions.isMadeByInstar && stage.columnOrder == .asNew
      && !addsToTables(fit, of: old.structure) && !hasCodeOfApp(session)
    let change = CoreDataSchemaChange(
      from: old, to: new, difference, style: isFresh ? .fresh : .altered,
      statementsOfStore: try statementsOfStore(session))
    try AppCode.requireNone(using: change.rebuiltTables, session)
    let appCode = try session.transaction { try AppCode(session) }
    try session.transactionWithoutRollback {
      // Before any step: a table that is rebuilt is renamed first, and its index would find no rows.
      for step in change.steps { try searchIndexes.prepare(for: step) }
      // They would count the rows of a rebuilt table, and their names are those of the old version.
      for step in triggers.dropSteps { try execute(session, step) }
      for step in change.steps { try execute(session, step) }
      for step in ExternalChange.steps(difference, new) { try execute(session, step) }
      try renumberHistory(session, old, new)
      try renameEntities(session, new)
      for step in triggers.createSteps { try execute(session, step) }
      let structure = try StoreStructure.read(session.database, format: .coredata)
      let differences = structure.differences(from: new.structure.adding(additions))
      guard differences.isEmpty else {
        throw InstarError(
          .unexpectedStructure, stage.what,
          cause: "after the change of schema, the store does not have the structure of "
            + "\(stage.to.schema.version):\n"
            + differences.joined(separator: "\n"), next: InstarError.adviceOnDefect)
      }
    }
    try session.transaction { try appCode.requireWorking(session) }
  }

  /// Whether tables of the version have more columns or indexes in the store. A rebuild would lose them.
  private func addsToTables(_ fit: StructureFit, of version: StoreStructure) -> Bool {
    let tables = Set(version.tables.map(\.name))
    return fit.additions.tables.contains { tables.contains($0.name) }
      || fit.additions.indexes.contains { tables.contains($0.table) }
  }

  /// Whether the store has a trigger or a view that is not Core Data's own. A rebuild would lose it; `ALTER TABLE`
  /// carries it over.
  private func hasCodeOfApp(_ session: SQLSession) throws -> Bool {
    try session.integer(
      "SELECT 1 FROM sqlite_schema WHERE type = 'view' OR type = 'trigger' AND name NOT GLOB 'Z_DA_*' "
        + "LIMIT 1") != nil
  }

  private func statementsOfStore(_ session: SQLSession) throws -> [String: String] {
    let indexes = try session.rows(
      "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL"
    ) { ($0.text(at: 0), $0.text(at: 1)) }
    return Dictionary(firstOf: indexes)
  }

  /// Updates the persistent history, which not every store has: it names entities by number, and changed properties by
  /// their position (section 9).
  private mutating func renumberHistory(
    _ session: SQLSession, _ old: CoreDataLayout, _ new: CoreDataLayout
  ) throws {
    guard
      try session.integer(
        "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'ACHANGE'") != nil
    else { return }
    func history(
      _ sql: String, _ comment: String, rowChange: RowChange = .updatesHistory
    ) -> ChangeStep {
      ChangeStep(
        sql, comment, .bookkeeping, rowChange: rowChange, table: "ACHANGE",
        reason: "updates the persistent history")
    }
    let removed = difference.removedEntities.compactMap { old.entity(named: $0.name)?.number }
    if !removed.isEmpty {
      // Their numbers belong to other entities now, or will.
      let numbers = removed.map { "\($0)" }.joined(separator: ", ")
      try execute(
        session,
        history(
          "DELETE FROM ACHANGE WHERE ZENTITY IN (\(numbers))",
          "deletes the history of removed entities"))
    }
    var moved: [(before: Int, after: Int)] = []
    var changed: [Int] = []
    for mapping in difference.entities {
      guard let source = mapping.old, let before = old.entity(named: source.name)?.number,
        let after = new.entity(named: mapping.new.name)?.number
      else { continue }
      if before != after { moved.append((before, after)) }
      if Set(source.properties.map(\.name)) != Set(mapping.new.properties.map(\.name)) {
        changed += new.entity(named: mapping.new.name)?.numbers ?? []
      }
    }
    if !moved.isEmpty {
      try execute(
        session,
        history(
          CoreDataSchemaChange.renumberStatement(table: "ACHANGE", column: "ZENTITY", moved),
          "renumbers the entities in the history"))
    }
    if !changed.isEmpty {
      // The history still says that the object changed, but no longer which of its properties.
      let numbers = Set(changed).sorted().map { "\($0)" }.joined(separator: ", ")
      try execute(
        session,
        history(
          "UPDATE ACHANGE SET ZCOLUMNS = NULL WHERE ZCOLUMNS IS NOT NULL AND ZENTITY IN (\(numbers))",
          "clears the positions of changed properties"))
    }
    let tombstones = try tombstoneStatements(session, old, new)
    for (sql, comment) in tombstones.columns {
      try execute(session, history(sql, comment, rowChange: .none))
    }
    for (sql, comment) in tombstones.values { try execute(session, history(sql, comment)) }
  }

  private typealias Statements = [(sql: String, comment: String)]

  /// Returns the statements that add columns for more preserved values of deleted rows, and those that move the values,
  /// which are in the order of the attributes' names.
  private func tombstoneStatements(
    _ session: SQLSession, _ old: CoreDataLayout, _ new: CoreDataLayout
  ) throws -> (columns: Statements, values: Statements) {
    func preserved(_ layout: CoreDataLayout) -> [String: [String]] {
      Dictionary(
        firstOf: layout.entityLayouts.map {
          ($0.name, $0.preservedAttributes.map(\.attribute.name))
        })
    }
    let (before, after) = (preserved(old), preserved(new))
    let count = Int(
      try session.integer(
        "SELECT count(*) FROM pragma_table_info('ACHANGE') WHERE name GLOB 'ZTOMBSTONE*'") ?? 0)
    let wanted = max(count, after.values.map(\.count).max() ?? 0)
    let columns = (count..<wanted).map {
      (
        sql: "ALTER TABLE ACHANGE ADD COLUMN ZTOMBSTONE\($0) BLOB",
        comment: "adds a column for preserved values"
      )
    }
    var values: Statements = []
    for mapping in difference.entities {
      guard let source = mapping.old, let number = new.entity(named: mapping.new.name)?.number,
        let names = before[source.name], !names.isEmpty
      else { continue }
      let moved = (after[mapping.new.name] ?? []).map { name in
        difference.sourceName(of: name, in: mapping).flatMap { names.firstIndex(of: $0) }
      }
      guard moved != names.indices.map({ $0 }) else { continue }
      let assignments = (0..<wanted).map { position in
        let origin = moved.indices.contains(position) ? moved[position] : nil
        return "ZTOMBSTONE\(position) = \(origin.map { "ZTOMBSTONE\($0)" } ?? "NULL")"
      }
      values.append(
        (
          sql:
            "UPDATE ACHANGE SET \(assignments.joined(separator: ", ")) WHERE ZCHANGETYPE = 2 AND ZENTITY = \(number)",
          comment: "moves the preserved values of deleted rows"
        ))
    }
    return (columns, values)
  }

  /// Core Data's own migration leaves the old name of a renamed entity in Z_PRIMARYKEY (section 2.1); the number
  /// counts.
  private mutating func renameEntities(_ session: SQLSession, _ layout: CoreDataLayout) throws {
    for entity in layout.entities {
      let other = try session.integer(
        "SELECT 1 FROM Z_PRIMARYKEY WHERE Z_ENT = \(entity.number) AND Z_NAME IS NOT '\(entity.name)'"
      )
      guard other != nil else { continue }
      try execute(
        session,
        ChangeStep(
          "UPDATE Z_PRIMARYKEY SET Z_NAME = '\(entity.name)' WHERE Z_ENT = \(entity.number)",
          "writes the entity's name", .bookkeeping, rowChange: .none, table: "Z_PRIMARYKEY",
          reason: "corrects the names in the list of entities"))
    }
  }
}

extension SchemaDifference {
  /// Returns the name that an attribute, own or inherited, had in the old version; `nil` where it is new.
  fileprivate func sourceName(of attribute: String, in mapping: EntityMapping) -> String? {
    if let found = mapping.attributes.first(where: { $0.new.name == attribute }) {
      return found.old?.name
    }
    return entities.first { $0.new.name == mapping.new.superentityName }
      .flatMap { sourceName(of: attribute, in: $0) }
  }
}
