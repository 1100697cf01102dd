import InstarModel
import InstarSchema
import InstarStore

/// The change of schema of one stage on a store of the Core Data format: on a clone, or on an empty store to show what would
/// be run.
struct CoreDataChangeExecutor {
  let stage: PlanDefinition.Stage
  let difference: SchemaDifference
  private var statements: [String] = []

  init(stage: PlanDefinition.Stage, difference: SchemaDifference) {
    self.stage = stage
    self.difference = difference
  }

  private var from: Schema.Version { stage.from.schema.version }
  private var to: Schema.Version { stage.to.schema.version }

  /// Makes the change in a transaction.
  ///
  /// - Returns: every statement that changed something, in order.
  func run(
    _ session: SQLSession, from old: CoreDataLayout, to new: CoreDataLayout
  ) throws -> [String] {
    var work = self
    try work.change(session, old, new)
    return work.statements
  }

  private mutating func execute(_ session: SQLSession, _ statement: String) throws {
    try session.run(statement)
    statements.append(statement)
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
    let change = CoreDataChange(
      from: old, to: new, difference, style: isFresh ? .fresh : .altered,
      statementsOfStore: try statementsOfStore(session))
    try session.transaction {
      // They would count the rows of a table that is made anew, and names in them are those of before.
      for statement in triggers.dropStatements { try execute(session, statement) }
      for statement in change.statements { try execute(session, statement) }
      for statement in ExternalChange.statements(difference, new) {
        try execute(session, statement)
      }
      try renumberHistory(session, old, new)
      try renameEntities(session, new)
      for statement in triggers.createStatements { try execute(session, statement) }
      let structure = try StoreStructure.read(session.database, format: .coredata)
      let differences = structure.differences(from: new.structure.adding(additions))
      guard differences.isEmpty else {
        throw InstarError(
          .unexpectedStructure, "cannot migrate from \(from) to \(to)",
          cause: "the store is not built like \(to) after the change of schema:\n"
            + differences.joined(separator: "\n"))
      }
    }
  }

  /// Whether tables of the version have more columns or indexes in the store, which would not come along to a table made
  /// anew.
  private func addsToTables(_ fit: StructureFit, of version: StoreStructure) -> Bool {
    let tables = Set(version.tables.map(\.name))
    return fit.additions.tables.contains { tables.contains($0.name) }
      || fit.additions.indexes.contains { tables.contains($0.table) }
  }

  /// Whether there is a trigger or a view that is not Core Data's own. It would go with a table that is made anew; where a
  /// table is altered, SQLite carries it along.
  private func hasCodeOfApp(_ session: SQLSession) throws -> Bool {
    try session.integer(
      "SELECT 1 FROM sqlite_schema WHERE type = 'view' OR type = 'trigger' AND name NOT GLOB 'Z_DA_*' "
        + "LIMIT 1") != nil
  }

  private func statementsOfStore(_ session: SQLSession) throws -> [String: String] {
    let statement = try session.statement(
      "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL")
    var statements: [String: String] = [:]
    while try statement.step() { statements[statement.text(at: 0)] = statement.text(at: 1) }
    statement.reset()
    return statements
  }

  /// The history of a store names entities by number too, and changed properties by their place among all (section 9). Not
  /// every store has one.
  private mutating func renumberHistory(
    _ session: SQLSession, _ old: CoreDataLayout, _ new: CoreDataLayout
  ) throws {
    guard
      try session.integer(
        "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'ACHANGE'") != nil
    else { return }
    let removed = difference.removedEntities.compactMap { old.entity(named: $0.name)?.number }
    if !removed.isEmpty {
      // Their numbers belong to other entities now, or will.
      let numbers = removed.map { "\($0)" }.joined(separator: ", ")
      try execute(session, "DELETE FROM ACHANGE WHERE ZENTITY IN (\(numbers))")
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
        session, CoreDataChange.renumberStatement(table: "ACHANGE", column: "ZENTITY", moved))
    }
    if !changed.isEmpty {
      // That an object was updated stays true; which of its properties is not known any more.
      let numbers = Set(changed).sorted().map { "\($0)" }.joined(separator: ", ")
      try execute(
        session,
        "UPDATE ACHANGE SET ZCOLUMNS = NULL WHERE ZCOLUMNS IS NOT NULL AND ZENTITY IN (\(numbers))")
    }
  }

  /// Core Data's own migration leaves the old name of a renamed entity in Z_PRIMARYKEY (section 2.1); the number counts.
  private mutating func renameEntities(_ session: SQLSession, _ layout: CoreDataLayout) throws {
    for entity in layout.entities {
      let other = try session.integer(
        "SELECT 1 FROM Z_PRIMARYKEY WHERE Z_ENT = \(entity.number) AND Z_NAME IS NOT '\(entity.name)'"
      )
      guard other != nil else { continue }
      try execute(
        session,
        "UPDATE Z_PRIMARYKEY SET Z_NAME = '\(entity.name)' WHERE Z_ENT = \(entity.number)")
    }
  }
}
