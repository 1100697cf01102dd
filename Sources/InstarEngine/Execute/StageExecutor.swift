import InstarModel
package import InstarSchema
package import InstarStore
package import InstarWire

/// Runs the stages of a plan on a clone, one after the other.
///
/// The clone is ours alone: a stage that fails leaves it in any state, and whoever made it throws it away.
package struct StageExecutor {
  private let connection: StoreConnection
  private let onEvent: (WorkerEvent) -> Void

  package init(connection: StoreConnection, onEvent: @escaping (WorkerEvent) -> Void) {
    self.connection = connection
    self.onEvent = onEvent
  }

  /// - Throws: the first error of a closure or statement, with the stage it happened in.
  package func run(_ path: [PlanDefinition.Stage], plan: String) throws(InstarError) {
    for (index, stage) in path.enumerated() {
      let manifest = stage.manifest
      onEvent(.stageStarted(index: index, count: path.count, stage: manifest))
      let start = ContinuousClock.now
      try StageRun(
        stage: stage, connection: connection, plan: plan, place: "\(index + 1) of \(path.count)"
      )
      .run()
      let duration = ContinuousClock.now - start
      onEvent(
        .stageFinished(
          index: index, count: path.count, stage: manifest,
          durationMicroseconds: duration.wholeMicroseconds))
    }
  }
}

/// One stage on the clone: `willMigrate` with the old models, the change of schema, `didMigrate` with the new ones.
private struct StageRun {
  let stage: PlanDefinition.Stage
  let connection: StoreConnection
  let plan: String
  let place: String

  private var from: Schema.Version { stage.from.schema.version }
  private var to: Schema.Version { stage.to.schema.version }

  func run() throws(InstarError) {
    let difference = SchemaDifference(from: stage.from.schema, to: stage.to.schema)
    try StageCheck.check(stage, difference, plan: plan)
    if case .custom(_, _, let willMigrate?, _) = stage.stage {
      try runClosure(willMigrate, "willMigrate", stage.from.schema)
    }
    try step("the change of schema") {
      try connection.perform { session in
        switch (stage.from.layout, stage.to.layout) {
        case (.coreData(let old), .coreData(let new)):
          try StageCheck.checkRows(stage, from: old, difference, session)
          try change(session, from: old, to: new, difference)
        case (.plain(let old), .plain(let new)):
          try PlainChangeExecutor(
            change: PlainChange(old: old, new: new, difference: difference), session: session
          )
          .run()
        case (.coreData, .plain), (.plain, .coreData):
          throw InstarError(
            .internalError, "cannot migrate from \(from) to \(to)",
            cause: "the two versions are of different formats")
        }
      }
    }
    if case .custom(_, _, _, let didMigrate?) = stage.stage {
      try runClosure(didMigrate, "didMigrate", stage.to.schema)
    }
  }

  /// Pending changes are saved when the closure returns, and discarded when it throws.
  private func runClosure(
    _ closure: (ModelContext) throws -> Void, _ phase: String, _ schema: Schema
  ) throws(InstarError) {
    try step(phase) {
      let context = try ModelContext.forStage(schema: schema, connection: connection, phase: phase)
      try closure(context)
      try context.save()
    }
  }

  private func change(
    _ session: SQLSession, from old: CoreDataLayout, to new: CoreDataLayout,
    _ difference: SchemaDifference
  ) throws {
    let change = LayoutChange(from: old, to: new, difference)
    try session.transaction {
      for statement in change.statements { try session.run(statement) }
      try renumberHistory(session, from: old, to: new)
      try renameEntities(session, to: new)
      let structure = try StoreStructure.read(session.database, format: .coredata)
      let differences = structure.differences(from: new.structure)
      guard differences.isEmpty else {
        throw InstarError(
          .unexpectedStructure, "cannot migrate from \(from) to \(to)",
          cause: "the store is not built like \(to) after the change of schema:\n"
            + differences.joined(separator: "\n"))
      }
    }
  }

  /// The history of a store names entities by number too (section 9). Not every store has one.
  private func renumberHistory(
    _ session: SQLSession, from old: CoreDataLayout, to new: CoreDataLayout
  ) throws {
    let moved = new.entities.compactMap { entity -> (Int, Int)? in
      guard let before = old.entity(named: entity.name),
        before.number != entity.number
      else { return nil }
      return (before.number, entity.number)
    }
    let removed = old.entities.filter { new.entity(named: $0.name) == nil }
    guard !moved.isEmpty || !removed.isEmpty,
      try session.integer(
        "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'ACHANGE'") != nil
    else { return }
    if !removed.isEmpty {
      // Their numbers belong to other entities now, or will.
      let numbers = removed.map { "\($0.number)" }.joined(separator: ", ")
      try session.run("DELETE FROM ACHANGE WHERE ZENTITY IN (\(numbers))")
    }
    if !moved.isEmpty {
      try session.run(
        LayoutChange.renumberStatement(table: "ACHANGE", column: "ZENTITY", moved))
    }
  }

  /// Core Data's own migration leaves the old name of a renamed entity in Z_PRIMARYKEY (section 2.1); the number counts.
  private func renameEntities(_ session: SQLSession, to new: CoreDataLayout) throws {
    for entity in new.entities {
      let other = try session.integer(
        "SELECT 1 FROM Z_PRIMARYKEY WHERE Z_ENT = \(entity.number) AND Z_NAME IS NOT '\(entity.name)'"
      )
      guard other != nil else { continue }
      try session.run(
        "UPDATE Z_PRIMARYKEY SET Z_NAME = '\(entity.name)' WHERE Z_ENT = \(entity.number)")
    }
  }

  /// Gives an error of any kind the stage and step it happened in.
  private func step(_ name: String, _ body: () throws -> Void) throws(InstarError) {
    do {
      try body()
    } catch {
      let what = "cannot migrate from \(from) to \(to)"
      let stage = "\(from) → \(to) (\(place)), \(name)"
      let known = error as? InstarError ?? (error as? SwiftDataError)?.cause
      throw known.map { $0.about("\(what): \($0.what)", stage: stage) }
        ?? InstarError(
          .stageFailed, what, stage: stage, cause: "\(name) threw: \(error)",
          next: "mend the plan, build the plugin again and drop it in")
    }
  }
}

extension Duration {
  var wholeMicroseconds: Int64 {
    components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000
  }
}
