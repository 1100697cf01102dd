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
    // A store in memory is used on through this connection; values that closures kept are of this run only.
    defer { try? connection.perform { try ScratchpadTable.drop($0) } }
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

extension PlanDefinition.Stage {
  /// The entities that the new version has from the old one.
  fileprivate func keptEntities(
    _ difference: SchemaDifference
  ) -> [(old: EntityLayout, new: EntityLayout)] {
    func byName(_ layout: StoreLayout) -> [String: EntityLayout] {
      Dictionary(
        layout.entityLayouts.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    }
    let (old, new) = (byName(from.layout), byName(to.layout))
    return difference.entities.compactMap { mapping in
      guard let source = mapping.old.flatMap({ old[$0.name] }), let target = new[mapping.new.name]
      else { return nil }
      return (source, target)
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
        try ScratchpadTable.follow(stage.keptEntities(difference), session)
        switch (stage.from.layout, stage.to.layout) {
        case (.coreData, .coreData):
          let conventions = try CoreDataConventions(of: session.database)
          let old = try CoreDataLayout(schema: stage.from.schema, conventions: conventions)
          let new = try CoreDataLayout(schema: stage.to.schema, conventions: conventions)
          try StageCheck.checkRows(stage, difference, old, session)
          _ = try SchemaChange(stage: stage, difference: difference).run(
            session, from: old, to: new)
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
      if case .coreData = stage.to.layout {
        try step("the order of new links") {
          try connection.perform { session in try placeLinks(session) }
        }
      }
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

  /// Links of ordered relationships that the plan's code made have no place yet: they come last, as Core Data counts
  /// (section 4.4), in the order of their rows.
  private func placeLinks(_ session: SQLSession) throws {
    let layout = try CoreDataLayout(
      schema: stage.to.schema, conventions: try CoreDataConventions(of: session.database))
    func place(_ column: String, among owner: String, in table: String) throws {
      try session.run(
        "UPDATE \(table) SET \(column) = 2048 + ifnull((SELECT max(o.\(column)) FROM \(table) AS o "
          + "WHERE o.\(owner) = \(table).\(owner)), 0) "
          + "WHERE \(owner) IS NOT NULL AND \(column) IS NULL")
    }
    for table in layout.tables {
      for column in table.columns {
        guard case .toOneOrder(let entity, let name) = column.role,
          let key = table.columns.first(where: { $0.role == .toOne(entity: entity, name: name) })
        else { continue }
        try place(column.name, among: key.name, in: table.name)
      }
    }
    for join in layout.joinTables {
      if let column = join.orderColumn {
        try place(column, among: join.otherColumn, in: join.name)
      }
      if let column = join.otherOrderColumn { try place(column, among: join.column, in: join.name) }
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
      if var known = known?.about(stage: stage) {
        // Whoever runs the stages has its own words for the whole; what could not be done in it must not get lost there.
        if known.what != what { known.cause = "\(known.what): \(known.cause)" }
        known.what = what
        throw known
      }
      throw InstarError(
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
