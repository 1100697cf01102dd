import Foundation
import InstarChange
import InstarModel
import InstarSchema
import InstarStore
import InstarWire

/// One stage on the clones: `willMigrate` with the old models, the change of schema, `didMigrate` with the new models.
struct StageRun {
  let stage: MigrationStage
  let manifest: StageManifest
  let clones: [StageClone]
  let keptValues: ScratchpadStore
  let plan: String
  let number: String
  let meter: WorkMeter

  /// - Returns: the values that no closure replaced so far, for each clone.
  func run() throws(InstarError) -> [UnwrittenValues] {
    for clone in clones {
      try step("the check") {
        try clone.connection.perform {
          $0.versionTable = clone.stage.versionSource.tableName
        }
      }
    }
    try check()
    if case .custom(let willMigrate?, _) = stage.work {
      try runClosure(
        willMigrate, .willMigrate,
        clones.map { ($0.stage.from.schema, $0.connection, $0.store) },
        other: clones.map(\.stage.to.schema),
        savesEqualValues: !clones.allSatisfy(\.unwritten.isEmpty))
    }
    let copies = try stage.work.isBridge ? copyClones() : []
    // After a success they are removed already.
    defer { for copy in copies { copy.discard() } }
    let unwritten = try changeSchema()
    if case .custom(_, let didMigrate?) = stage.work {
      try runClosure(
        didMigrate, .didMigrate, clones.map { ($0.stage.to.schema, $0.connection, $0.store) },
        other: clones.map(\.stage.from.schema),
        savesEqualValues: !unwritten.allSatisfy(\.isEmpty))
      try orderNewLinks()
    }
    if case .bridge(let migrate) = stage.work {
      try bridge(migrate, copies, savesEqualValues: !unwritten.allSatisfy(\.isEmpty))
      try orderNewLinks()
    }
    for clone in clones {
      try step("the other end of links") {
        try clone.connection.perform { session in try clone.change.endLinks(session) }
      }
    }
    try checkValues(unwritten)
    return unwritten
  }

  private func copyClones() throws(InstarError) -> [StageCopy] {
    var copies: [StageCopy] = []
    try step("the copy for the bridge") {
      for clone in clones { copies.append(try StageCopy(of: clone.connection)) }
    }
    return copies
  }

  /// Runs the code of a bridge, and saves what it left pending.
  private func bridge(
    _ migrate: (ModelContext, ModelContext) throws -> Void, _ copies: [StageCopy],
    savesEqualValues: Bool
  ) throws(InstarError) {
    let pairs = clones.flatMap { clone in
      clone.stage.schemas.entityLayoutPairs(clone.change.difference)
        .filter { $0.keepsKeys && $0.old.key.isRowID }
        .compactMap { pair in pair.new.map { (old: pair.old.name, new: $0.name) } }
    }
    try step(StageClosure.bridge.rawValue) {
      let old = try ModelContext.forStage(
        zip(clones, copies).map { ($0.stage.from.schema, $1.connection, $0.store) },
        other: clones.map(\.stage.to.schema), closure: .bridge, keptValues: keptValues,
        isReadOnly: true, meter: meter)
      let new = try ModelContext.forStage(
        clones.map { ($0.stage.to.schema, $0.connection, $0.store) },
        other: clones.map(\.stage.from.schema), closure: .bridge, keptValues: keptValues,
        meter: meter)
      defer { meter.endNamed() }
      new.savesEqualValues = savesEqualValues
      new.beforeWrite = stage.beforeWrite
      old.counterparts = Dictionary(firstOf: pairs.map { ($0.new, $0.old) })
      new.counterparts = Dictionary(firstOf: pairs.map { ($0.old, $0.new) })
      do {
        try migrate(old, new)
        try old.finishStage()
        try new.finishStage()
        report(old.wholeFetches.merging(new.wholeFetches, uniquingKeysWith: max), of: .bridge)
      } catch {
        old.rollback()
        new.rollback()
        throw error
      }
    }
    try step("the copy for the bridge") { for copy in copies { try copy.remove() } }
  }

  /// Refuses what the difference of the versions, or the rows, do not allow.
  private func check() throws(InstarError) {
    for clone in clones {
      try StageCheck.check(clone.stage.schemas, plan: plan)
      try step("the check") {
        try clone.connection.perform { session in
          try StageCheck.checkNeeds(clone.stage.schemas, plan: plan, session)
        }
      }
    }
  }

  private func changeSchema() throws(InstarError) -> [UnwrittenValues] {
    var unwritten: [UnwrittenValues] = []
    try step("the change of schema") {
      let changes = clones.flatMap { $0.stage.schemas.entityLayoutPairs($0.change.difference) }
      try keptValues.follow(
        changes.map { change in
          ScratchpadStore.Change(
            old: change.old.name, new: change.new?.name, keepsKeys: change.keepsKeys)
        })
      for clone in clones {
        unwritten.append(
          try clone.connection.perform { session in
            session.meter = meter
            defer { session.meter = nil }
            return try clone.change.begin(session, after: clone.unwritten)
          })
      }
    }
    return unwritten
  }

  private func orderNewLinks() throws(InstarError) {
    for clone in clones {
      try step("the order of new links") {
        try clone.connection.perform { session in
          let layout = try clone.stage.to.schema.layout(in: session.database)
          try session.withoutTriggers {
            for statement in layout.linkOrderStatements { try session.run(statement) }
          }
        }
      }
    }
  }

  /// After the last stage: refuses values that cannot be read, and reports those that are lost.
  private func checkValues(_ unwritten: [UnwrittenValues]) throws(InstarError) {
    for (clone, unwritten) in zip(clones, unwritten) where clone.isLastStage {
      try step("the check of stored values") { try clone.requireReadableValues() }
      try step("the count of lost values") {
        let lost = try clone.connection.perform { session in try unwritten.finish(session) }
        for values in lost { clone.onEvent(.valuesLost(values)) }
      }
    }
  }

  /// Saves pending changes when the closure returns, and discards them when it throws. An error of a fetch or a save
  /// that the closure caught is thrown here.
  ///
  /// - Parameter savesEqualValues: Whether a save also writes a property that was set to the value that it has: the
  ///   closure's own value is then told from that of the change of schema.
  private func runClosure(
    _ body: (ModelContext) throws -> Void, _ closure: StageClosure,
    _ clones: [(schema: Schema, connection: StoreConnection, store: String?)], other: [Schema],
    savesEqualValues: Bool
  ) throws(InstarError) {
    try step(closure.rawValue) {
      let context = try ModelContext.forStage(
        clones, other: other, closure: closure, keptValues: keptValues, meter: meter)
      defer { meter.endNamed() }
      context.savesEqualValues = savesEqualValues
      context.beforeWrite = stage.beforeWrite
      do {
        try body(context)
        try context.finishStage()
        report(context.wholeFetches, of: closure)
      } catch {
        context.rollback()
        throw error
      }
    }
  }

  private func report(_ fetches: [String: Int], of closure: StageClosure) {
    for (entity, rows) in fetches.sorted(by: { $0.key < $1.key }) {
      // The clones of one container share the context.
      clones.first?.onEvent(
        .fetchedWhole(
          WholeFetch(
            from: manifest.from, to: manifest.to, closure: closure.rawValue, entity: entity,
            rows: rows)))
    }
  }

  /// The file that Foundation could not write for lack of permission.
  private static func refusedFile(_ error: any Error) -> String? {
    guard let error = error as? CocoaError, error.code == .fileWriteNoPermission else { return nil }
    return error.filePath ?? error.url?.path
  }

  /// What may be the reason for an error of the system: a confined worker gets one, such as "Bad file descriptor", for
  /// what an app may do.
  private static func hint(on error: ThrownError) -> String {
    error.isOfSystem
      ? " (a worker of instard or instarctl cannot start processes, use the network or write other files than the store)"
      : ""
  }

  /// Adds the stage and step to an error of any kind.
  private func step(_ name: String, _ body: () throws -> Void) throws(InstarError) {
    do {
      try body()
    } catch {
      if let known = error as? InstarError ?? (error as? SwiftDataError)?.cause {
        throw known.of(step: name, in: manifest, number)
      }
      let what = "cannot migrate from \(manifest.from) to \(manifest.to)"
      let stage = "\(manifest.title(number)), \(name)"
      if let file = Self.refusedFile(error) {
        throw InstarError(
          .stageFailed, what, stage: stage, cause: "\(name) has no permission to write '\(file)'",
          next:
            "change the store through the closure's context: a worker cannot write any other file; "
            + "then build the plugin again and install it")
      }
      throw InstarError(
        .stageFailed, what, stage: stage,
        cause: "\(name) threw: \(ThrownError(error).reason)",
        next:
          "fix the plan\(Self.hint(on: ThrownError(error))), build the plugin again and install it")
    }
  }
}

/// A clone that takes part in a stage, with its store's models of the stage's two versions.
struct StageClone {
  let stage: PlanDefinition.Stage
  let connection: StoreConnection
  let store: String?
  let change: SchemaChange
  let onEvent: (WorkerEvent) -> Void
  /// What earlier stages left.
  let unwritten: UnwrittenValues
  let isLastStage: Bool
  /// All stages of the run.
  private let path: [SchemaStage]

  init(
    _ clone: StageExecutor.Clone, stage: PlanDefinition.Stage, unwritten: UnwrittenValues
  ) {
    self.stage = stage
    self.unwritten = unwritten
    isLastStage = clone.path.last?.manifest == stage.manifest
    path = clone.path.map(\.schemas)
    connection = clone.connection
    store = clone.store
    onEvent = clone.onEvent
    change = stage.change
  }
}

extension StageClone {
  /// Refuses stored values that the last version cannot read: they would stay in the store, and no app would get them.
  ///
  /// - Throws: `missingRequiredValues` with their number and the first rows.
  fileprivate func requireReadableValues() throws {
    let changes = path.readingChanges
    if changes.isEmpty { return }
    let version = stage.to.schema.version
    let context = try ModelContext.forStage(
      [(stage.to.schema, connection, store)], other: [], closure: nil,
      keptValues: ScratchpadStore())
    for change in changes {
      guard let values = try context.unreadableValues(of: change.property, in: change.entity)
      else { continue }
      let rows = AffectedRows(count: values.count, keys: values.keys.map(String.init))
      throw InstarError(
        .missingRequiredValues,
        "cannot migrate from \(stage.from.schema.version) to \(version)",
        cause:
          "\(values.count) values of \(change.entity).\(change.property) cannot be read in \(version): "
          + "\(rows.text); \(values.error.cause)",
        next: (values.error.next.map { "\($0); or " } ?? "")
          + "let willMigrate write values that \(version) reads", rows: rows)
    }
  }
}
