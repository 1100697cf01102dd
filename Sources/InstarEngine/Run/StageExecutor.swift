import InstarChange
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
  /// - Parameter isCanceled: Whether the run is to stop. Closures can ask, and long work ends with `CancellationError`.
  /// - Throws: The first error of a closure or statement, with its stage.
  package static func run(
    _ clones: [Clone], plan: String, isCanceled: @escaping () -> Bool = { Task.isCancelled }
  ) throws(InstarError) {
    let keptValues = ScratchpadStore()
    var stages: [StageManifest] = []
    for stage in clones.flatMap(\.path).map(\.manifest) where !stages.contains(stage) {
      stages.append(stage)
    }
    // Every stage ends at a later version, so this is the order of each clone's own path.
    stages.sort { $0.from < $1.from }
    var unwritten = clones.map { _ in UnwrittenValues() }
    for (index, manifest) in stages.enumerated() {
      var stageClones: [StageClone] = []
      var positions: [Int] = []
      for (position, clone) in clones.enumerated() {
        guard let stage = clone.path.first(where: { $0.manifest == manifest }) else { continue }
        stageClones.append(
          StageClone(clone, stage: stage, unwritten: unwritten[position]))
        positions.append(position)
      }
      guard let stage = stageClones.first?.stage.stage else { continue }
      for clone in stageClones { clone.onEvent(.stageStarted(manifest)) }
      let reports = stageClones.map(\.onEvent)
      let meter = WorkMeter(isCanceled: isCanceled) { progress in
        for report in reports { report(.progress(progress)) }
      }
      let left = try StageRun(
        stage: stage, manifest: manifest, clones: stageClones, keptValues: keptValues, plan: plan,
        number: "\(index + 1) of \(stages.count)", meter: meter
      )
      .run()
      for (position, values) in zip(positions, left) { unwritten[position] = values }
      for clone in stageClones { clone.onEvent(.stageFinished(manifest)) }
    }
  }
}
