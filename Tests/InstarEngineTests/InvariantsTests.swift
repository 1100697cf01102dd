import Instar
import InstarEngine
import InstarWire
import Testing

/// Whole runs of an app's container, in both formats: a closure breaks an invariant, and the keeper's part finds it.
@Suite("Invariants of a plan", .serialized)
struct InvariantsTests {
  private let store: MigratedStore

  init() throws {
    store = try MigratedStore()
    Script.invariants = []
  }

  /// Five notes, two of them in a folder.
  private func make(_ format: StoreFormat) throws {
    if format == .plain {
      return try store.makeTables(
        """
        CREATE TABLE folder (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
        CREATE TABLE note (
          id INTEGER PRIMARY KEY, title TEXT NOT NULL, folder_id INTEGER REFERENCES folder (id));
        CREATE INDEX by_folder ON note (folder_id);
        INSERT INTO folder VALUES (1, 'work');
        INSERT INTO note VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', NULL), (4, 'd', NULL), (5, 'e', NULL)
        """)
    }
    let folder = InvariantsV1.Folder(name: "work")
    let notes = ["a", "b", "c", "d", "e"].map { InvariantsV1.Note(title: $0) }
    for note in notes.prefix(2) { note.folder = folder }
    try store.make(InvariantsV1.self, [folder] + notes)
  }

  private func refusal(_ format: StoreFormat) throws -> InstarError {
    format == .plain
      ? try store.refusal(InvariantRowsV1.self, InvariantRowsV2.self)
      : try store.refusal(InvariantsV1.self, InvariantsV2.self)
  }

  private func migrate(_ format: StoreFormat) throws {
    if format == .plain {
      try store.migrate(InvariantRowsV1.self, InvariantRowsV2.self)
    } else {
      try store.migrate(InvariantsV1.self, InvariantsV2.self)
    }
  }

  /// Calls `change` with the articles, by title, in `didMigrate`.
  private func afterwards(
    _ format: StoreFormat, _ change: @escaping (ModelContext, [any InvariantArticle]) throws -> Void
  ) {
    Script.didMigrate = { context in
      let articles: [any InvariantArticle]
      if format == .plain {
        articles = try context.fetch(FetchDescriptor<InvariantRowsV2.Article>())
      } else {
        articles = try context.fetch(FetchDescriptor<InvariantsV2.Article>())
      }
      try change(context, articles.sorted { $0.headline < $1.headline })
    }
  }

  @Test(
    "a closure that deletes rows of a renamed model violates the invariant that keeps them",
    arguments: [StoreFormat.coredata, .plain])
  func rows(format: StoreFormat) throws {
    try make(format)
    Script.invariants = [.rowsKept(of: InvariantsV2.Article.self)]
    afterwards(format) { context, articles in
      for article in articles where ["b", "d"].contains(article.headline) {
        context.delete(article)
      }
    }
    let error = try refusal(format)
    #expect(error.code == .invariantViolated)
    #expect(
      error.cause.contains("'the rows of Article are kept'")
        && error.cause.contains("Article had 5 rows and has 3: missing are rows "), "\(error)")
    #expect(error.rows?.count == 2)
    if format == .plain { #expect(error.rows?.keys == ["2", "4"]) }
  }

  @Test(
    "a closure that removes links violates the invariant that keeps them",
    arguments: [StoreFormat.coredata, .plain])
  func links(format: StoreFormat) throws {
    try make(format)
    Script.invariants = [.relationshipsKept]
    afterwards(format) { _, articles in articles.first?.leaveFolder() }
    let error = try refusal(format)
    #expect(error.code == .invariantViolated)
    #expect(error.cause.contains("had 2 links and has 1; row "), "\(error)")
    #expect(error.cause.contains(" has lost its link"), "\(error)")
    #expect(error.rows?.count == 1)
  }

  @Test(
    "the query of an invariant can have other names before the stage",
    arguments: [StoreFormat.coredata, .plain])
  func queries(format: StoreFormat) throws {
    try make(format)
    let (article, note) = format == .plain ? ("article", "note") : ("ZARTICLE", "ZNOTE")
    let (headline, title) = format == .plain ? ("headline", "title") : ("ZHEADLINE", "ZTITLE")
    let titles = Invariant.staysEqual(
      "SELECT \(headline) FROM \(article) ORDER BY 1",
      upTo: [Schema.Version(1, 0, 0): "SELECT \(title) FROM \(note) ORDER BY 1"],
      named: "titles stay")
    let noEmpty = Invariant.returnsNothing(
      "SELECT \(headline) FROM \(article) WHERE \(headline) = ''", named: "no empty title")
    Script.invariants = [titles]
    afterwards(format) { _, articles in articles.first?.headline = "A" }
    let changed = try refusal(format)
    #expect(changed.cause.contains("'titles stay'"), "\(changed)")
    #expect(changed.cause.contains("missing: row 'a'; new: row 'A'"), "\(changed)")

    Script.invariants = [noEmpty]
    afterwards(format) { _, articles in articles.first?.headline = "" }
    let empty = try refusal(format)
    #expect(empty.cause.contains("'no empty title'") && empty.cause.contains("returns row ''"))

    Script.invariants = [titles, noEmpty, .rowsKept, .relationshipsKept]
    Script.didMigrate = nil
    try migrate(format)
    #expect(
      try store.lastReport?.invariants == [
        "titles stay", "no empty title", "the rows of all models are kept",
        "all relationships are kept",
      ])
  }

  @Test("a store in memory keeps its rows where an invariant is violated")
  func memory() throws {
    let configuration = ModelConfiguration("invariants", isStoredInMemoryOnly: true)
    let container = try ModelContainer(
      for: Schema(versionedSchema: InvariantsV1.self), configurations: configuration)
    let context = ModelContext(container)
    context.insert(InvariantsV1.Note(title: "a"))
    try context.save()
    Script.invariants = [.rowsKept]
    Script.didMigrate = { try $0.delete(model: InvariantsV2.Article.self) }
    let error = #expect(throws: SwiftDataError.self) {
      try ModelContainer(
        for: Schema(versionedSchema: InvariantsV2.self),
        migrationPlan: ScriptedPlan<InvariantsV1, InvariantsV2>.self,
        configurations: configuration)
    }
    #expect(error?.cause?.code == .invariantViolated)
    #expect(error?.cause?.rows == AffectedRows(count: 1, keys: ["1"]))
    #expect(try context.fetchCount(FetchDescriptor<InvariantsV1.Note>()) == 1)
  }

  @Test("a query that does not compile at a version makes the plan invalid, without a store")
  func uncompiled() throws {
    Script.invariants = [.staysEqual("SELECT count(*) FROM ZARTICLE", named: "count")]
    let error = #expect(throws: InstarError.self) {
      try PlanDefinition(ScriptedPlan<InvariantsV1, InvariantsV2>.self)
    }
    #expect(error?.code == .invalidPlan)
    #expect(error?.cause.contains("'count'") == true)
    #expect(error?.cause.contains("no such table: ZARTICLE") == true)
    #expect(error?.next == "correct the query for version 1.0.0")
  }
}

protocol InvariantArticle: PersistentModel {
  var headline: String { get set }
  func leaveFolder()
}

extension InvariantsV2.Article: InvariantArticle {
  func leaveFolder() { folder = nil }
}

extension InvariantRowsV2.Article: InvariantArticle {
  func leaveFolder() { folder = nil }
}

enum InvariantsV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Note.self, Folder.self] }

  @Model final class Note {
    var title: String
    var folder: Folder?
    init(title: String) { self.title = title }
  }

  @Model final class Folder {
    var name: String
    @Relationship(inverse: \Note.folder) var notes: [Note] = []
    init(name: String) { self.name = name }
  }
}

enum InvariantsV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Article.self, Folder.self] }

  @Model(originalName: "Note") final class Article {
    @Attribute(originalName: "title") var headline: String
    var folder: Folder?
    init(headline: String) { self.headline = headline }
  }

  @Model final class Folder {
    var name: String
    @Relationship(originalName: "notes", inverse: \Article.folder) var articles: [Article] = []
    init(name: String) { self.name = name }
  }
}

enum InvariantRowsV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Note.self, Folder.self] }

  @Table("note") @Model final class Note {
    @Column(.primaryKey) var id: Int
    var title: String
    @Column("folder_id") var folder: Folder?
    init(id: Int, title: String) { (self.id, self.title) = (id, title) }
  }

  @Table("folder") @Model final class Folder {
    @Column(.primaryKey) var id: Int
    var name: String
    init(id: Int, name: String) { (self.id, self.name) = (id, name) }
  }
}

enum InvariantRowsV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Article.self, Folder.self] }

  @Table("article") @Model(originalName: "Note") final class Article {
    @Column(.primaryKey) var id: Int
    @Attribute(originalName: "title") var headline: String
    @Column("folder_id") var folder: Folder?
    init(id: Int, headline: String) { (self.id, self.headline) = (id, headline) }
  }

  @Table("folder") @Model final class Folder {
    @Column(.primaryKey) var id: Int
    var name: String
    init(id: Int, name: String) { (self.id, self.name) = (id, name) }
  }
}
