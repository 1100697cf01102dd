import InstarSchema
internal import InstarChange
internal import InstarEngine
internal import InstarModel
internal import InstarStore
internal import InstarWire

/// Brings the stores of a container that is being opened to the last version of its plan.
///
/// With several stores, the run of each goes on inside that of the one before: when the stages run, all stores that are
/// behind are locked, backed up and cloned, and the closures of a stage see the models of all that take part in it.
/// Then the clones are verified and written back, the last store's first. An error before that so leaves all stores as
/// they were; one in the verification or write-back of a store leaves those after it at the last version, and says so.
struct ContainerMigration {
  private let plan: PlanDefinition
  private let stores: [Store]

  private struct Store {
    let part: ModelContainer.Part
    /// With the part of each version that is in the store.
    let plan: PlanDefinition

    var place: String { part.configuration.place }

    /// Of the store as it is now: it may have been made meanwhile.
    func migration() throws(InstarError) -> StoreMigration {
      try StoreMigration(part.configuration, plan: plan)
    }
  }

  /// - Parameter parts: The stores with their part of the plan's last version, in the order in which they are written.
  /// - Throws: why the plan cannot be divided among the stores.
  init(_ plan: PlanDefinition, of parts: [ModelContainer.Part]) throws(InstarError) {
    self.plan = plan
    guard parts.count > 1 else {
      stores = parts.map { Store(part: $0, plan: plan) }
      return
    }
    var owners: [String: Int] = [:]
    for (index, part) in parts.enumerated() {
      for entity in part.schema.entities { owners[entity.name] = index }
    }
    let plans = try plan.parts(
      for: parts.map(\.configuration.place), owners: owners,
      tables: { () throws(InstarError) in
        try parts.map { part throws(InstarError) in
          try Self.naming(part) { try StoreMigration(part.configuration, plan: plan).tables() }
        }
      })
    stores = zip(parts, plans).map { Store(part: $0, plan: $1) }
  }

  /// Has an error say which of several stores it is about.
  private static func naming<Value>(
    _ part: ModelContainer.Part, _ body: () throws -> Value
  ) throws(InstarError) -> Value {
    do {
      return try body()
    } catch {
      let what = "cannot migrate the store"
      var known = (error as? SwiftDataError)?.cause ?? InstarError(error, what: what)
      known.what = "\(part.configuration.place): \(known.what)"
      throw known.about(store: part.configuration.url.path)
    }
  }

  // MARK: Running

  /// What has become of the stores so far.
  private final class Progress {
    var migrated: Set<ModelConfiguration> = []
    /// The stores that were missing, and were made to take part.
    var made: [(configuration: ModelConfiguration, file: CreatedStoreFile)] = []
    /// The first error: those of the runs around it only repeat it.
    var failure: InstarError?
    /// The store whose run the first error ended; `nil` for an error of a stage, which is one of all stores.
    var failed: ModelConfiguration?
  }

  /// - Throws: the first error, with what state the stores are in.
  func run() throws(InstarError) {
    let progress = Progress()
    do {
      if stores.count > 1 { try prepare(progress) }
      try run(stores[...], with: [], progress)
    } catch {
      for made in progress.made where !progress.migrated.contains(made.configuration) {
        made.file.remove()
      }
      var known = progress.failure ?? InstarError(error, what: "cannot migrate the store")
      if !progress.migrated.isEmpty, let last = plan.versions.last?.schema.version {
        known.state = states(progress, failed: known.state, last)
      }
      throw known
    }
  }

  /// What state all stores are in.
  ///
  /// - Parameter failed: The state of the store whose run failed; `nil` if it is unchanged.
  private func states(_ progress: Progress, failed: String?, _ last: Schema.Version) -> String {
    var places: [(state: String, places: [String])] = []
    for store in stores {
      let configuration = store.part.configuration
      let state =
        progress.migrated.contains(configuration)
        ? "migrated to \(last)" : (configuration == progress.failed ? failed : nil) ?? "unchanged"
      if let index = places.firstIndex(where: { $0.state == state }) {
        places[index].places.append(store.place)
      } else {
        places.append((state, [store.place]))
      }
    }
    return places.map { "\($0.places.joined(separator: ", ")): \($0.state)" }
      .joined(separator: "; ")
  }

  private func run(
    _ waiting: ArraySlice<Store>, with clones: [StageExecutor.Clone], _ progress: Progress
  ) throws {
    guard let store = waiting.first else {
      guard !clones.isEmpty else { return }
      do throws(InstarError) {
        return try StageExecutor.run(clones, plan: plan.name)
      } catch {
        if stores.count > 1 { progress.failure = error }
        throw error
      }
    }
    var isCloned = false
    let others = waiting.dropFirst()
    func migrate() throws -> Bool {
      try store.migration().run { clone throws(InstarError) in
        isCloned = true
        do {
          try run(others, with: clones + [clone], progress)
        } catch {
          throw InstarError(error, what: "cannot migrate the store")
        }
      }
    }
    do {
      if stores.count == 1 {
        _ = try migrate()
      } else if try Self.naming(store.part, migrate) {
        progress.migrated.insert(store.part.configuration)
      }
    } catch {
      if progress.failure == nil {
        progress.failure = InstarError(error, what: "cannot migrate the store")
        progress.failed = store.part.configuration
      }
      throw error
    }
    if !isCloned { try run(others, with: clones, progress) }
  }

  // MARK: Several stores

  /// Refuses what can be refused before any store is locked, and makes the stores that are missing where code of the
  /// plan may want to write to them: at the version at which that code begins, so that it sees the models of all
  /// stores. They are removed again where the migration fails before they are migrated.
  private func prepare(_ progress: Progress) throws(InstarError) {
    var earliest: Schema.Version?
    var missing: [Store] = []
    for store in stores {
      switch try Self.naming(store.part, { try store.migration().state() }) {
      case .missing: missing.append(store)
      case .current: break
      case .behind(let version, _): earliest = min(earliest ?? version, version)
      }
    }
    guard let earliest, try plan.path(from: earliest).contains(where: \.isCustom) else { return }
    for store in missing where store.part.configuration.allowsSave {
      guard let version = store.plan.version(earliest) else { continue }
      try Self.naming(store.part) {
        let configuration = store.part.configuration
        let path = configuration.url.path
        let isNewFile = !configuration.isStoredInMemoryOnly && !CreatedStoreFile.isTaken(path)
        let part = ModelContainer.Part(configuration, version.schema)
        let container = try ModelContainer(opening: [part], schema: version.schema)
        guard !configuration.isStoredInMemoryOnly else { return }
        try container.close()
        if isNewFile, let file = CreatedStoreFile(path: path) {
          progress.made.append((configuration, file))
        }
      }
    }
  }
}

extension PlanDefinition.Stage {
  fileprivate var isCustom: Bool { manifest.kind != .lightweight }
}
