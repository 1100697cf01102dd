import Foundation
import InstarModel
package import InstarSchema
package import InstarStore
package import InstarWire

/// Runs the stages of a plan on a clone, one after the other; or on the clones of several stores of one container.
/// Closures then see the models of all stores.
///
/// The clones are private. A failed stage leaves them in any state, and the caller discards them.
package enum StageExecutor {
  /// A clone, and the stages to the last version of its store.
  package struct Clone {
    let connection: StoreConnection
    let store: String?
    let path: [PlanDefinition.Stage]
    let onEvent: (WorkerEvent) -> Void

    /// - Parameters:
    ///   - store: The path of the store that was cloned; `nil` for one in memory.
    ///   - onEvent: Called for each stage that the clone takes part in.
    package init(
      connection: StoreConnection, store: String? = nil, path: [PlanDefinition.Stage],
      onEvent: @escaping (WorkerEvent) -> Void
    ) {
      self.connection = connection
      self.store = store
      self.path = path
      self.onEvent = onEvent
    }
  }

  /// Runs each stage once, on all clones that are at its first version. Each clone ends at its last version.
  ///
  /// - Throws: The first error of a closure or statement, with its stage.
  package static func run(_ clones: [Clone], plan: String) throws(InstarError) {
    let keptValues = ScratchpadStore()
    var stages: [StageManifest] = []
    for stage in clones.flatMap(\.path).map(\.manifest) where !stages.contains(stage) {
      stages.append(stage)
    }
    // Every stage ends at a later version, so this is the order of each clone's own path.
    stages.sort { $0.from < $1.from }
    for (index, manifest) in stages.enumerated() {
      var parts: [StageRun.Part] = []
      var listeners: [(WorkerEvent) -> Void] = []
      for clone in clones {
        guard let stage = clone.path.first(where: { $0.manifest == manifest }) else { continue }
        parts.append(StageRun.Part(stage: stage, connection: clone.connection, store: clone.store))
        listeners.append(clone.onEvent)
      }
      guard let stage = parts.first?.stage.stage else { continue }
      for tell in listeners { tell(.stageStarted(manifest)) }
      try StageRun(
        stage: stage, from: manifest.from, to: manifest.to, parts: parts, keptValues: keptValues,
        plan: plan, number: "\(index + 1) of \(stages.count)"
      )
      .run()
      for tell in listeners { tell(.stageFinished(manifest)) }
    }
  }
}

/// One stage on the clones: `willMigrate` with the old models, the change of schema, `didMigrate` with the new models.
private struct StageRun {
  /// A clone, with its store's models of the stage's two versions.
  struct Part {
    let stage: PlanDefinition.Stage
    let connection: StoreConnection
    let store: String?
    let change: SchemaChange

    init(stage: PlanDefinition.Stage, connection: StoreConnection, store: String?) {
      self.stage = stage
      self.connection = connection
      self.store = store
      change = SchemaChange(stage)
    }
  }

  let stage: MigrationStage
  let from: Schema.Version
  let to: Schema.Version
  let parts: [Part]
  let keptValues: ScratchpadStore
  let plan: String
  let number: String

  func run() throws(InstarError) {
    for part in parts {
      try StageCheck.check(part.stage, part.change.difference, plan: plan)
      try step("the check") {
        try part.connection.perform { session in
          try StageCheck.checkNeeds(part.stage, part.change.difference, plan: plan, session)
        }
      }
    }
    if case .custom(_, _, let willMigrate?, _) = stage {
      try runClosure(
        willMigrate, "willMigrate",
        parts.map { ($0.stage.from.schema, $0.connection, $0.store) })
    }
    try step("the change of schema") {
      let changes = parts.flatMap { $0.stage.entityLayoutPairs($0.change.difference) }
      try keptValues.follow(
        changes.map { change in
          ScratchpadStore.Change(
            old: change.old.name, new: change.new?.name, keepsKeys: change.keepsKeys)
        })
      for part in parts {
        _ = try part.connection.perform { session in try part.change.make(session) }
      }
    }
    if case .custom(_, _, _, let didMigrate?) = stage {
      try runClosure(
        didMigrate, "didMigrate", parts.map { ($0.stage.to.schema, $0.connection, $0.store) })
      for part in parts {
        try step("the order of new links") {
          try part.connection.perform { session in
            let layout = try StoreLayout(schema: part.stage.to.schema, in: session.database)
            try session.withoutTriggers {
              for statement in layout.linkOrderStatements { try session.run(statement) }
            }
          }
        }
      }
    }
  }

  /// Saves pending changes when the closure returns, and discards them when it throws. An error of a fetch or a save
  /// that the closure caught is thrown here.
  private func runClosure(
    _ closure: (ModelContext) throws -> Void, _ phase: String,
    _ clones: [(schema: Schema, connection: StoreConnection, store: String?)]
  ) throws(InstarError) {
    try step(phase) {
      let context = try ModelContext.forStage(
        clones, phase: phase, keptValues: keptValues)
      try closure(context)
      try context.finishStage()
    }
  }

  /// The file that Foundation could not write for lack of permission.
  private static func refusedFile(_ error: any Error) -> String? {
    guard let error = error as? CocoaError, error.code == .fileWriteNoPermission else { return nil }
    return error.filePath ?? error.url?.path
  }

  /// Adds the stage and step to an error of any kind.
  private func step(_ name: String, _ body: () throws -> Void) throws(InstarError) {
    do {
      try body()
    } catch {
      let what = "cannot migrate from \(from) to \(to)"
      let stage = "\(from) → \(to) (\(number)), \(name)"
      let known = error as? InstarError ?? (error as? SwiftDataError)?.cause
      if var known = known?.about(stage: stage) {
        // Callers replace `what` by their own, so the cause has to keep it.
        if known.what != what { known.cause = "\(known.what): \(known.cause)" }
        known.what = what
        throw known
      }
      if let file = Self.refusedFile(error) {
        throw InstarError(
          .stageFailed, what, stage: stage, cause: "\(name) has no permission to write '\(file)'",
          next:
            "change the store through the closure's context: a worker cannot write any other file; "
            + "then build the plugin again and install it")
      }
      throw InstarError(
        .stageFailed, what, stage: stage, cause: "\(name) threw: \(error)",
        next: "fix the plan, build the plugin again and install it")
    }
  }
}
