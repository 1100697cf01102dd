import GRDB
import Instar
import InstarTestSupport
import Testing

@Suite("The scratchpad of a run", .serialized)
struct ScratchpadTests {
  private let folder: TemporaryFolder
  private let configuration: ModelConfiguration

  init() throws {
    folder = try TemporaryFolder()
    configuration = ModelConfiguration(url: URL(filePath: folder.path("a.store")))
    setenv("INSTAR_STATE_DIR", folder.path("state"), 1)
  }

  private func makeStore(_ configuration: ModelConfiguration) throws {
    let container = try ModelContainer(
      for: Schema(versionedSchema: EffortsV1.self), configurations: configuration)
    let context = ModelContext(container)
    for hours in 1...3 { context.insert(EffortsV1.Job(effort: "\(hours) h")) }
    try context.save()
    if !configuration.isStoredInMemoryOnly { try container.close() }
  }

  private func efforts(_ configuration: ModelConfiguration) throws -> [Int] {
    let container = try ModelContainer(
      for: Schema(versionedSchema: EffortsV3.self), migrationPlan: EffortPlan.self,
      configurations: configuration)
    return try ModelContext(container)
      .fetch(FetchDescriptor<EffortsV3.Work>(sortBy: [SortDescriptor(\.effort)])).map(\.effort)
  }

  @Test("a value kept for a model is found by that of its row in a later stage, by another name")
  func ofModels() throws {
    try makeStore(configuration)
    #expect(try efforts(configuration) == [1, 2, 3])
  }

  @Test("a run in memory has a scratchpad, too")
  func inMemory() throws {
    let configuration = ModelConfiguration(isStoredInMemoryOnly: true)
    try makeStore(configuration)
    #expect(try efforts(configuration) == [1, 2, 3])
  }

  @Test(
    "rows of ordinary tables are found whatever their primary key is",
    arguments: ["", " WITHOUT ROWID"])
  func ofOrdinaryTables(form: String) throws {
    try makeJobs(form)
    let version: any VersionedSchema.Type =
      form.isEmpty ? CodedV2.self as any VersionedSchema.Type : KeyedV2.self
    let container = try ModelContainer(
      for: Schema(versionedSchema: version),
      migrationPlan: form.isEmpty ? CodedPlan.self : KeyedPlan.self, configurations: configuration)
    let context = ModelContext(container)
    let found =
      form.isEmpty
      ? try context.fetch(FetchDescriptor<CodedV2.Job>()).map { "\($0.code)\($0.effort)" }
      : try context.fetch(FetchDescriptor<KeyedV2.Job>()).map { "\($0.code)\($0.effort)" }
    #expect(found.sorted() == ["a1", "b2", "c3"])
  }

  private func makeJobs(_ form: String) throws {
    let queue = try DatabaseQueue(path: folder.path("a.store"))
    try queue.inDatabase { db in
      try db.execute(
        sql: """
          CREATE TABLE job (code TEXT NOT NULL PRIMARY KEY, effort TEXT NOT NULL)\(form);
          INSERT INTO job VALUES ('x', 'gone'), ('c', '3 h'), ('a', '1 h'), ('b', '2 h');
          DELETE FROM job WHERE code = 'x'; PRAGMA user_version = 1;
          """)
    }
    try queue.close()
  }

  enum CodedV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Job.self] }

    @Table("job")
    @Model
    final class Job {
      @Column(.primaryKey) var code: String
      var effort: String
      init(code: String, effort: String) { (self.code, self.effort) = (code, effort) }
    }
  }

  enum CodedV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Job.self] }

    @Table("job")
    @Model
    final class Job {
      @Column(.primaryKey) var code: String
      var effort: Int = 0
      init(code: String, effort: Int) { (self.code, self.effort) = (code, effort) }
    }
  }

  enum CodedPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [CodedV1.self, CodedV2.self] }
    static var stages: [MigrationStage] {
      [
        .custom(fromVersion: CodedV1.self, toVersion: CodedV2.self) { context in
          for job in try context.fetch(FetchDescriptor<CodedV1.Job>()) {
            try context.scratchpad.save(job.effort, for: "effort", of: job)
          }
        } didMigrate: { context in
          for job in try context.fetch(FetchDescriptor<CodedV2.Job>()) {
            let text = try context.scratchpad.value(String.self, for: "effort", of: job)
            job.effort = Int(text?.prefix(1) ?? "") ?? 0
          }
        }
      ]
    }
  }

  enum KeyedV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Job.self] }

    @Table("job", .withoutRowID)
    @Model
    final class Job {
      @Column(.primaryKey) var code: String
      var effort: String
      init(code: String, effort: String) { (self.code, self.effort) = (code, effort) }
    }
  }

  enum KeyedV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Job.self] }

    @Table("work", .withoutRowID)
    @Model
    final class Job {
      @Column(.primaryKey) var code: String
      var effort: Int = 0
      init(code: String, effort: Int) { (self.code, self.effort) = (code, effort) }
    }
  }

  enum KeyedPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [KeyedV1.self, KeyedV2.self] }
    static var stages: [MigrationStage] {
      [
        .custom(fromVersion: KeyedV1.self, toVersion: KeyedV2.self) { context in
          // Keys of tables without rowid are numbers given in the order in which rows are met: another one than later.
          let order = [SortDescriptor(\KeyedV1.Job.code, order: .reverse)]
          for job in try context.fetch(FetchDescriptor<KeyedV1.Job>(sortBy: order)) {
            try context.scratchpad.save(job.effort, for: "effort", of: job)
          }
        } didMigrate: { context in
          for job in try context.fetch(FetchDescriptor<KeyedV2.Job>()) {
            let text = try context.scratchpad.value(String.self, for: "effort", of: job)
            job.effort = Int(text?.prefix(1) ?? "") ?? 0
          }
        }
      ]
    }
  }

  @Test("values of rows whose primary key changes are refused, and nothing is changed")
  func ofChangedKeys() throws {
    try makeJobs("")
    let error = #expect(throws: SwiftDataError.self) {
      try ModelContainer(
        for: Schema(versionedSchema: NumberedV2.self), migrationPlan: NumberedPlan.self,
        configurations: configuration)
    }
    #expect(error?.cause?.code == .unsupported)
    #expect(error?.cause?.cause.contains("this stage changes the primary key") == true)
    #expect(error?.cause?.state == "unchanged")
  }

  enum NumberedV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Job.self] }

    @Table("job")
    @Model
    final class Job {
      @Column(.primaryKey) var number: Int = 0
      var code: String
      init(code: String) { self.code = code }
    }
  }

  enum NumberedPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [CodedV1.self, NumberedV2.self] }
    static var stages: [MigrationStage] {
      [
        .custom(
          fromVersion: CodedV1.self, toVersion: NumberedV2.self,
          willMigrate: { context in
            for job in try context.fetch(FetchDescriptor<CodedV1.Job>()) {
              try context.scratchpad.save(job.effort, for: "effort", of: job)
            }
          }, didMigrate: nil)
      ]
    }
  }

  @Test("a model that takes the name of one that goes has its own values")
  func ofTakenNames() throws {
    let container = try ModelContainer(
      for: Schema(versionedSchema: DraftsV1.self), configurations: configuration)
    let context = ModelContext(container)
    context.insert(DraftsV1.Note(text: "note"))
    context.insert(DraftsV1.Draft(text: "draft"))
    try context.save()
    try container.close()
    let migrated = try ModelContainer(
      for: Schema(versionedSchema: DraftsV2.self), migrationPlan: DraftsPlan.self,
      configurations: configuration)
    let notes = try ModelContext(migrated).fetch(FetchDescriptor<DraftsV2.Note>())
    #expect(notes.map(\.text) == ["kept of draft"])
  }

  enum DraftsV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Note.self, Draft.self] }

    @Model
    final class Note {
      var text: String
      init(text: String) { self.text = text }
    }

    @Model
    final class Draft {
      var text: String
      init(text: String) { self.text = text }
    }
  }

  enum DraftsV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Note.self] }

    @Model(originalName: "Draft")
    final class Note {
      var text: String
      init(text: String) { self.text = text }
    }
  }

  enum DraftsPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [DraftsV1.self, DraftsV2.self] }
    static var stages: [MigrationStage] {
      [
        .custom(fromVersion: DraftsV1.self, toVersion: DraftsV2.self) { context in
          for note in try context.fetch(FetchDescriptor<DraftsV1.Note>()) {
            try context.scratchpad.save("kept of \(note.text)", for: "text", of: note)
          }
          for draft in try context.fetch(FetchDescriptor<DraftsV1.Draft>()) {
            try context.scratchpad.save("kept of \(draft.text)", for: "text", of: draft)
          }
        } didMigrate: { context in
          for note in try context.fetch(FetchDescriptor<DraftsV2.Note>()) {
            note.text = try context.scratchpad.value(String.self, for: "text", of: note) ?? ""
          }
        }
      ]
    }
  }

  @Test("a container's context has no scratchpad, and says where there is one")
  func outside() throws {
    let container = try ModelContainer(
      for: Schema(versionedSchema: EffortsV1.self), configurations: configuration)
    let context = ModelContext(container)
    let error = #expect(throws: InstarError.self) { try context.scratchpad.save(1, for: "x") }
    #expect(error?.code == .unsupported)
    #expect(error?.cause == "only the contexts of willMigrate and didMigrate have one")
  }

  @Test(
    "a value that is not kept, or is of another type, fails the stage", arguments: [true, false])
  func failing(isRead: Bool) throws {
    try makeStore(configuration)
    let plan: any SchemaMigrationPlan.Type = isRead ? MistypedPlan.self : RowlessPlan.self
    let error = #expect(throws: SwiftDataError.self) {
      try ModelContainer(
        for: Schema(versionedSchema: EffortsV2.self), migrationPlan: plan,
        configurations: configuration)
    }
    let cause = try #require(error?.cause?.cause)
    #expect(cause.contains(isRead ? "the kept value is not a String" : "the model has no row yet"))
    #expect(cause.hasSuffix("; the plan's code ignored this error"))
  }

  enum MistypedPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [EffortsV1.self, EffortsV2.self] }
    static var stages: [MigrationStage] {
      [
        .custom(fromVersion: EffortsV1.self, toVersion: EffortsV2.self) { context in
          try context.scratchpad.save([0.1], for: "numbers")
        } didMigrate: { context in
          _ = try? context.scratchpad.value(String.self, for: "numbers")
        }
      ]
    }
  }

  enum RowlessPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [EffortsV1.self, EffortsV2.self] }
    static var stages: [MigrationStage] {
      [
        .custom(fromVersion: EffortsV1.self, toVersion: EffortsV2.self) { context in
          try? context.scratchpad.save(1, for: "x", of: EffortsV1.Job(effort: ""))
        } didMigrate: { _ in
        }
      ]
    }
  }

  enum EffortsV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Job.self] }

    @Model
    final class Job {
      var effort: String
      init(effort: String) { self.effort = effort }
    }
  }

  enum EffortsV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Work.self] }

    @Model(originalName: "Job")
    final class Work {
      var effort: Int = 0
      init(effort: Int) { self.effort = effort }
    }
  }

  enum EffortsV3: VersionedSchema {
    static let versionIdentifier = Schema.Version(3, 0, 0)
    static var models: [any PersistentModel.Type] { [Work.self] }

    @Model
    final class Work {
      var effort: Int = 0
      var note: String?
      init(effort: Int) { self.effort = effort }
    }
  }

  enum EffortPlan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] {
      [EffortsV1.self, EffortsV2.self, EffortsV3.self]
    }
    static var stages: [MigrationStage] { [keep, use] }

    static let keep = MigrationStage.custom(
      fromVersion: EffortsV1.self, toVersion: EffortsV2.self,
      willMigrate: { context in
        let pad = context.scratchpad
        try context.enumerate(FetchDescriptor<EffortsV1.Job>()) { job in
          try pad.save("nothing", for: "effort", of: job)
          try pad.save(job.effort, for: "effort", of: job)
        }
        try pad.save([Double.infinity, -.infinity, 0.1], for: "numbers")
        try pad.save(String?.none, for: "nothing")
      }, didMigrate: nil)

    static let use = MigrationStage.custom(
      fromVersion: EffortsV2.self, toVersion: EffortsV3.self, willMigrate: nil,
      didMigrate: { context in
        let pad = context.scratchpad
        try context.enumerate(FetchDescriptor<EffortsV3.Work>()) { work in
          let text = try pad.value(String.self, for: "effort", of: work)
          work.effort = Int(text?.prefix { $0.isNumber } ?? "") ?? 0
          #expect(try pad.value(String.self, for: "other", of: work) == nil)
        }
        #expect(try pad.value([Double].self, for: "numbers") == [.infinity, -.infinity, 0.1])
        #expect(try pad.value(Int.self, for: "effort") == nil)
        #expect(try pad.value(String.self, for: "nothing") == nil)
      })
  }
}
