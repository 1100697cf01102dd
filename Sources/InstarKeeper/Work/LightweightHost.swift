package import InstarChange
package import InstarSchema
package import InstarStore
package import InstarWire
internal import Synchronization

/// Makes lightweight stages in this process, without the plugin. Everything else is left to a host that loads it.
///
/// A lightweight stage follows from the schemas of its two versions, which the plugin's manifest has. So no code of the
/// plugin is needed, and none runs here. Statements on the clone have the budget of the store.
///
/// If the schema of a store decides all statements of the stages, they are kept for every store with that schema. A run
/// in a transaction has only these (`StoreTransaction`): finding them again would take longer than its other steps.
package struct LightweightHost: PluginHost {
  private let other: any PluginHost
  /// How often a statement is shown in a run.
  private static let shownRepetitions = 5

  /// - Parameter other: Runs the stages that need the plugin, and answers questions about it.
  package init(besides other: any PluginHost) {
    self.other = other
  }

  package func describe(plugin: String) throws(InstarError) -> PluginManifest {
    try other.describe(plugin: plugin)
  }

  package func plan(
    _ plan: String, from version: Schema.Version, plugin: String, store: StoreDDL?
  ) throws(InstarError) -> PlannedMigration {
    try other.plan(plan, from: version, plugin: plugin, store: store)
  }

  package func loadsPlugin(for stages: [SchemaStage], on schema: SchemaText) -> Bool {
    // The module of a virtual table would parse shadow tables that a hostile store has filled: only in a worker.
    stages.contains(where: \.needsPlugin) || schema.hasVirtualTable
      || !stages.readingChanges.isEmpty
  }

  /// Brings a clone to the last version of a plan, in this process where no stage needs the plugin.
  ///
  /// - Throws: The first error of a stage; the clone is then in any state.
  package func migrate(
    _ work: CloneWork, onEvent: (CloneWorkEvent) throws(InstarError) -> Void
  ) throws(InstarError) {
    guard !loadsPlugin(for: work.stages, on: work.schema) else {
      return try other.migrate(work, onEvent: onEvent)
    }
    if let transaction = work.transaction {
      return try run(work.stages, in: transaction, onEvent)
    }
    let lines = LogLines()
    let log = work.sqlDebugLevel > 0 ? lines.log(level: work.sqlDebugLevel) : nil
    let connection = try StoreConnection(
      path: work.clone, durability: .clone, externalFolder: work.externalFolder, log: log)
    defer {
      // After an error the clone is discarded, and its connection ends with this function.
      try? connection.close()
    }
    var unwritten = UnwrittenValues()
    for (index, stage) in work.stages.enumerated() {
      try onEvent(.stageStarted(stage.manifest))
      let result = Result { () throws(InstarError) in
        try withoutActuallyEscaping(onEvent) { onEvent throws(InstarError) in
          try stage.makeLightweight(
            plan: work.plan, number: "\(index + 1) of \(work.stages.count)", after: unwritten,
            on: connection,
            // No run depends on a report of its progress.
            meter: WorkMeter { try? onEvent(.progress($0)) })
        }
      }
      log?.writeCounts()
      for line in lines.take() { try onEvent(.sql(line)) }
      unwritten = try result.get()
      try onEvent(.stageFinished(stage.manifest))
    }
    for values in try lostValues(unwritten, connection) { try onEvent(.valuesLost(values)) }
    try connection.close()
  }

  /// Makes stages by the statements that are known of them.
  private func run(
    _ stages: [SchemaStage], in transaction: StoreTransaction,
    _ onEvent: (CloneWorkEvent) throws(InstarError) -> Void
  ) throws(InstarError) {
    for (index, (stage, statements)) in zip(stages, transaction.statements).enumerated() {
      try onEvent(.stageStarted(stage.manifest))
      do {
        try transaction.change { db in
          for statement in statements { try db.runFirstStatement(of: statement) }
        }
      } catch {
        throw InstarError(error, what: "cannot run a stage").of(
          step: "the change of schema", in: stage.manifest, "\(index + 1) of \(stages.count)")
      }
      try onEvent(.stageFinished(stage.manifest))
    }
  }

  private func lostValues(
    _ unwritten: UnwrittenValues, _ connection: StoreConnection
  ) throws(InstarError) -> [LostValues] {
    do {
      return try connection.perform { session in try unwritten.finish(session) }
    } catch {
      throw InstarError(error, what: "cannot count lost values")
    }
  }

  /// The lines of a log, until the end of a stage.
  private final class LogLines: Sendable {
    private let lines = Mutex<[String]>([])

    func log(level: Int) -> SQLLog {
      SQLLog(SQLDebug(level: level), repetitionLimit: LightweightHost.shownRepetitions) { line in
        self.lines.withLock { $0.append(line) }
      }
    }

    func take() -> [String] {
      lines.withLock { lines in
        defer { lines = [] }
        return lines
      }
    }
  }
}

extension SchemaStage {
  /// Whether the stage runs code of the plan, or needs its types.
  fileprivate var needsPlugin: Bool { kind != .lightweight || needsTypes }
}

extension SchemaText {
  fileprivate var hasVirtualTable: Bool {
    objects.contains { $0.type == "table" && $0.tree == .none }
  }
}
