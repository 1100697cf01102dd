import InstarSchema
internal import InstarEngine
internal import InstarLinux
internal import InstarModel
internal import InstarStore

/// The migration of one store of a container that is being opened.
enum StoreMigration {
  /// Runs the stages of a plan on a clone, with those of the other stores of the container.
  typealias Stages = (StageExecutor.Clone) throws(InstarError) -> Void

  /// Where a store stands before it is migrated.
  enum State {
    /// There is none, or an empty database: the container makes it.
    case missing
    case current
    /// - Parameter adopting: The version that it has to be adopted as; `nil` where the store declares it itself.
    case behind(from: Schema.Version, adopting: Schema.Version?)
  }

  case file(FileMigration)
  case memory(MemoryMigration)
  /// There is no such file.
  case missing

  /// - Parameter plan: with the part of each version that is in the store.
  init(_ configuration: ModelConfiguration, plan: PlanDefinition) throws(InstarError) {
    if configuration.isStoredInMemoryOnly {
      self = .memory(MemoryMigration(connection: try configuration.memoryConnection(), plan: plan))
    } else if let path = try Self.existingFile(configuration.url) {
      self = .file(
        FileMigration(
          path: path, plan: plan, isReadOnly: !configuration.allowsSave,
          stateFolder: Installation.appStateFolder))
    } else {
      self = .missing
    }
  }

  /// A store's file, by a path without symbolic links; `nil` where there is none, or an empty one, which a container
  /// fills.
  private static func existingFile(_ url: URL) throws(InstarError) -> String? {
    guard let path = RealPath.of(url.path) else {
      guard errno != ENOENT else { return nil }
      throw InstarError(
        .unreadableStore, "cannot find the store", cause: String(cString: strerror(errno)))
    }
    var status = stat()
    return stat(path, &status) == 0 && status.st_size == 0 ? nil : path
  }

  /// The names of the store's tables, as they stand in SQL.
  func tables() throws -> Set<String> {
    switch self {
    case .file(let migration): try migration.tables()
    case .memory(let migration): try migration.tables()
    case .missing: []
    }
  }

  func state() throws -> State {
    switch self {
    case .file(let migration): try migration.state()
    case .memory(let migration): try migration.state()
    case .missing: .missing
    }
  }

  /// - Returns: Whether the store was migrated; `false` where it is missing or at the last version.
  func run(_ stages: @escaping Stages) throws -> Bool {
    switch self {
    case .file(let migration): try migration.run(stages)
    case .memory(let migration): try migration.run(stages)
    case .missing: false
    }
  }
}
