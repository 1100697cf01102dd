public import Instar
internal import InstarWire

/// Tests a plan on real store files, by the same engine as the daemon's: backup, clone, stages, verification, cutover.
///
/// ```swift
/// let test = MigrationTest(NotesPlan.self)
/// let store = try test.store(at: NotesV1.self) { context in
///   context.insert(NotesV1.Note(uid: "1", title: "Milk"))
/// }
/// try store.migrate()
/// let letters = try store.read(NotesV2.self) { context in
///   try context.fetch(FetchDescriptor<NotesV2.Note>()).map(\.letters)
/// }
/// try store.expectRowsKept()
/// ```
///
/// Every function throws if something is not as it should be. An expectation that is not met throws
/// `ExpectationFailure`, an engine that refuses or fails a run throws `InstarError`. So each function works in Swift
/// Testing and in XCTest alike.
///
/// Stores, backups and clones are in a scratch folder, which is removed with the last value that uses it. Values of
/// this type are independent, so tests may run in parallel.
public struct MigrationTest: Sendable {
  let plan: any SchemaMigrationPlan.Type
  let scratch: ScratchFolder

  /// Where a test keeps its stores.
  public enum StorePlace: Sendable {
    /// In the folder for temporary files (`TMPDIR`, else `/tmp`).
    case disk
    /// In `/dev/shm`, a file system in memory. The engine does the same there as on a disk, but no test waits for one.
    /// All stores, backups and clones of a test are in memory at once.
    case memory
  }

  /// Creates a test of a plan. Mistakes in the plan, and a place that does not exist, are thrown by the functions that
  /// use them.
  ///
  /// - Parameter place: Where the stores are. They are files in both places, because migrations copy and replace files.
  public init(_ plan: any SchemaMigrationPlan.Type, in place: StorePlace = .disk) {
    self.plan = plan
    scratch = ScratchFolder(in: place)
  }

  // MARK: Making stores

  /// Makes a store of one version.
  ///
  /// - Parameter fill: Inserts models of that version. They are saved when it returns.
  /// - Throws: What `fill` throws; an error of the save, if the models break the rules of their schema.
  public func store(
    at version: any VersionedSchema.Type, fill: (ModelContext) throws -> Void = { _ in }
  ) throws -> TestStore {
    let store = TestStore(self, url: try scratch.newStore())
    let container = try ModelContainer(
      for: Schema(versionedSchema: version), configurations: ModelConfiguration(url: store.url))
    let context = ModelContext(container)
    try fill(context)
    try context.save()
    try container.close()
    return store
  }

  /// Makes a store of one version with random models of every class, and random links between them.
  ///
  /// Required values and links are there and unique values differ, as the schema demands. An optional value is `nil` in
  /// one of five models. The same seed gives the same models, so name it in a failure.
  ///
  /// - Parameter rows: The number of models of each class.
  public func randomStore(
    at version: any VersionedSchema.Type, rows: Int = 20, seed: UInt64
  ) throws -> TestStore {
    var generator = SeededGenerator(seed: seed)
    return try store(at: version) { context in
      context.insertRandomModels(count: rows, using: &generator)
    }
  }

  /// Makes a copy of a store, with its side files. The original is only read.
  ///
  /// - Parameters:
  ///   - path: The path of the store. A relative one begins at the folder of `Package.swift` above the test's source.
  ///   - file: The test's source.
  /// - Throws: `missingStore` if there is no such file.
  public func store(copying path: String, file: String = #filePath) throws -> TestStore {
    let original = PackageFolder.url(of: path, from: file)
    guard FileManager.default.fileExists(atPath: original.path) else {
      throw InstarError(
        .missingStore, "cannot copy the store '\(original.path)'", cause: "the file does not exist",
        next: "check the path")
    }
    let copy = try scratch.newStore()
    for suffix in ["", SideFile.log.rawValue, SideFile.journal.rawValue] {
      let part = original.path + suffix
      guard FileManager.default.fileExists(atPath: part) else { continue }
      try FileManager.default.copyItem(atPath: part, toPath: copy.path + suffix)
    }
    let support = ScratchFolder.supportFolder(of: original)
    if FileManager.default.fileExists(atPath: support.path) {
      try FileManager.default.copyItem(at: support, to: ScratchFolder.supportFolder(of: copy))
    }
    return TestStore(self, url: copy)
  }

  // MARK: All versions

  /// Checks that stores of every version migrate to every later one: the stages are there, they make what the schemas
  /// say, and no rows and links get lost on the way.
  ///
  /// - Parameters:
  ///   - rows: The number of random models of each class in each store.
  ///   - except: The names of entities that may lose rows, and of relationships that may lose links: "Note",
  ///     "Note.tags".
  /// - Throws: The first error, with the two versions and the seed.
  public func expectEveryVersionMigrates(
    rows: Int = 20, seed: UInt64 = 1, except: Set<String> = []
  ) throws {
    let versions = plan.schemas.sorted { $0.versionIdentifier < $1.versionIdentifier }
    // Also checks a plan with one version.
    _ = try PlanMigration(plan)
    for (index, from) in versions.enumerated() {
      for to in versions.dropFirst(index + 1) {
        do {
          let store = try randomStore(at: from, rows: rows, seed: seed)
          try store.migrate(to: to)
          try store.expectRowsKept(except: except)
        } catch {
          throw ExpectationFailure(
            "a store of \(from) does not migrate to \(to), with random models of seed \(seed)",
            ["\(error)"])
        }
      }
    }
  }

  // MARK: Statements

  /// The statements of all stages from a version to the last one, as `instarctl plan` shows them: the stages, their
  /// changes, and the SQL of each change for a store that Instar made.
  public func statements(from version: any VersionedSchema.Type) throws -> String {
    let planned = try PlanMigration(plan).statements(from: version.versionIdentifier)
    var lines: [String] = []
    for stage in planned.stages {
      lines.append("-- \(stage.from) → \(stage.to), \(stage.kind.rawValue)")
      for change in stage.planned {
        lines.append("-- \(change.reason)")
        lines += change.statements.sorted { $0.position < $1.position }.map { "\($0.sql);" }
      }
    }
    return lines.map { $0 + "\n" }.joined()
  }

  /// Compares the statements from the first version to the last one with those in a file, so that a change of the plan
  /// shows up in review. A missing file is written, and the test fails this once.
  ///
  /// - Parameters:
  ///   - path: The path of the file. A relative one begins at the folder of `Package.swift` above the test's source.
  ///   - file: The test's source.
  public func expectStatements(match path: String, file: String = #filePath) throws {
    let snapshot = PackageFolder.url(of: path, from: file)
    guard let first = plan.schemas.min(by: { $0.versionIdentifier < $1.versionIdentifier }) else {
      _ = try PlanMigration(plan)
      return
    }
    let actual = try statements(from: first)
    guard FileManager.default.fileExists(atPath: snapshot.path) else {
      try Data(actual.utf8).write(to: snapshot, options: .atomic)
      throw ExpectationFailure(
        "there was no snapshot of the statements; wrote '\(snapshot.path)'",
        ["read it, add it to version control, and run the tests again"])
    }
    let expected = try String(contentsOf: snapshot, encoding: .utf8)
    guard actual != expected else { return }
    let lines = (old: expected.split(separator: "\n"), new: actual.split(separator: "\n"))
    let changes = lines.new.difference(from: lines.old).map { change in
      switch change {
      case .remove(_, let line, _): "- \(line)"
      case .insert(_, let line, _): "+ \(line)"
      }
    }
    throw ExpectationFailure(
      "the statements of \(plan) are not those of '\(snapshot.path)'",
      changes + ["if the change is right, delete that file and run the tests again"])
  }

  // MARK: Failures

  /// Runs the plan on copies of a store, and fails the first, second, third … row that its code writes: the closures by
  /// saves and by SQL, the statements of `sql` stages, and the transforms, which compute one row after the other. Each
  /// run must end with an error and leave the store as it was.
  ///
  /// It finds code that ignores errors: such code would go on, and lose what it could not write.
  ///
  /// - Parameter limit: The number of rows at which the plan is failed at most.
  /// - Returns: The number of rows at which it was failed; 0 for a plan without code that writes.
  @discardableResult
  public func expectUnchangedAfterFailure(
    atEachRowOf store: TestStore, limit: Int = 50
  ) throws -> Int {
    for row in 1...max(limit, 1) {
      let copy = try self.store(copying: store.url.path)
      let before = try copy.content()
      let fault = RowFault(at: row)
      let hasMigrated = try fault.fails { try copy.migrate(beforeWrite: fault.beforeWrite) }
      guard fault.hasHappened else { return row - 1 }
      if hasMigrated {
        throw ExpectationFailure(
          "the plan ignored a failure: row \(row) that its code writes failed, but the store was migrated",
          ["let the closures throw the errors that they get"])
      }
      guard try copy.content() == before else {
        throw ExpectationFailure(
          "the store was changed by a run that failed at row \(row) that the plan's code writes")
      }
    }
    return max(limit, 1)
  }

  /// Begins to migrate copies of a store with `instarctl`, kills it or its keeper at a random moment, and migrates
  /// again. After a kill the store must be whole, at the version before or after; at the end it must be at the last
  /// version, with as many rows as after a migration that nobody killed.
  ///
  /// The plugin is built from the sources of the package that the test belongs to, once for all tests.
  ///
  /// - Parameters:
  ///   - store: A store at an earlier version.
  ///   - kills: The number of copies.
  ///   - seed: Decides about moments and processes.
  ///   - file: The test's source.
  /// - Throws: `ExpectationFailure` with the number of the copy and the seed.
  public func expectWholeAfterKills(
    of store: TestStore, kills: Int = 5, seed: UInt64 = 1, file: String = #filePath
  ) throws {
    let plugin = try PluginProcess(forTestIn: file)
    let from = try store.version()
    let before = try store.content()
    let reference = try self.store(copying: store.url.path)
    let duration = try ContinuousClock().measure {
      try plugin.migrate(reference.url, stateFolder: try reference.stateFolder())
    }
    let (last, rows) = (try reference.version(), try reference.rowCounts())
    var generator = SeededGenerator(seed: seed)
    for number in 1...max(kills, 1) {
      let copy = try self.store(copying: store.url.path)
      let folder = try copy.stateFolder()
      try plugin.migrate(
        copy.url, stateFolder: folder,
        killing: PluginProcess.Victim.allCases.randomElement(using: &generator) ?? .keeper,
        after: duration * Double.random(in: 0...1, using: &generator))
      let place = "kill \(number) of seed \(seed)"
      let version = try copy.version()
      guard version == last || version == from else {
        throw ExpectationFailure(
          "after \(place) the store is at \(version.map(\.description) ?? "no version of the plan")"
        )
      }
      if version == from, try copy.content() != before {
        throw ExpectationFailure("after \(place) the store has its old version, but other content")
      }
      try plugin.migrate(copy.url, stateFolder: folder)
      let counts = try copy.rowCounts()
      guard try copy.version() == last, counts == rows else {
        throw ExpectationFailure(
          "after \(place) and another run, the row counts differ from those of an uninterrupted migration",
          Set(counts.keys).union(rows.keys).filter { counts[$0] != rows[$0] }.sorted().map {
            "\($0): \(counts[$0] ?? 0) rows instead of \(rows[$0] ?? 0)"
          })
      }
    }
  }
}
