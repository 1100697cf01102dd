import Foundation
import GRDB
import Instar
import InstarEngine
import InstarStore
import InstarTestSupport
import InstarWire
import Testing

/// The first version in both formats. In the second one `name` is `title`, and `Album`, which sorts first, renumbers
/// the entities.
private enum Songs1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Song.self] }

  @Model final class Song {
    var name: String
    var plays: Int
    init(name: String) {
      self.name = name
      plays = 0
    }
  }
}

private enum Songs2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Album.self, Song.self] }

  @Model final class Album {
    var label: String?
    init() {}
  }

  @Model final class Song {
    @Attribute(originalName: "name") var title: String
    var plays: Int
    init(title: String) {
      self.title = title
      plays = 0
    }
  }
}

/// `Song` is `Track`.
private enum Tracks2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Track.self] }

  @Model(originalName: "Song") final class Track {
    var name: String
    var plays: Int
    init(name: String) {
      self.name = name
      plays = 0
    }
  }
}

private enum TrackPlan: SchemaMigrationPlan {
  static let schemas: [any VersionedSchema.Type] = [Songs1.self, Tracks2.self]
  static let stages = [
    MigrationStage.lightweight(fromVersion: Songs1.self, toVersion: Tracks2.self)
  ]
}

/// The table `wine` is `bottle`.
private enum Bottles2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Bottle.self] }

  @Table("bottle")
  @Model(originalName: "Wine") final class Bottle {
    var id: Int
    var name: String
    var year: String?
    init(id: Int, name: String) {
      self.id = id
      self.name = name
    }
  }
}

private enum BottlePlan: SchemaMigrationPlan {
  static let schemas: [any VersionedSchema.Type] = [Wines1.self, Bottles2.self]
  static let stages = [
    MigrationStage.lightweight(fromVersion: Wines1.self, toVersion: Bottles2.self)
  ]
}

private enum SongPlan: SchemaMigrationPlan {
  static let schemas: [any VersionedSchema.Type] = [Songs1.self, Songs2.self]
  static let stages = [MigrationStage.lightweight(fromVersion: Songs1.self, toVersion: Songs2.self)]
}

/// The same, with code that writes rows.
private enum CountingSongPlan: SchemaMigrationPlan {
  static let schemas: [any VersionedSchema.Type] = [Songs1.self, Songs2.self]
  static let stages = [
    MigrationStage.custom(
      fromVersion: Songs1.self, toVersion: Songs2.self, willMigrate: nil,
      didMigrate: { context in
        for song in try context.fetch(FetchDescriptor<Songs2.Song>()) { song.plays += 1 }
      })
  ]
}

private enum Wines1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Wine.self] }

  @Table("wine")
  @Model final class Wine {
    var id: Int
    var name: String
    var year: String?
    init(id: Int, name: String) {
      self.id = id
      self.name = name
    }
  }
}

/// `name` is `label`; `year` is required, which needs a rebuild that writes rows.
private enum Wines2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Wine.self] }

  @Table("wine")
  @Model final class Wine {
    var id: Int
    @Attribute(originalName: "name") var label: String
    var year: String = "unknown"
    init(id: Int, label: String) {
      self.id = id
      self.label = label
    }
  }
}

private enum WinePlan: SchemaMigrationPlan {
  static let schemas: [any VersionedSchema.Type] = [Wines1.self, Wines2.self]
  static let stages = [MigrationStage.lightweight(fromVersion: Wines1.self, toVersion: Wines2.self)]
}

private enum CountingWinePlan: SchemaMigrationPlan {
  static let schemas: [any VersionedSchema.Type] = [Wines1.self, Wines2.self]
  static let stages = [
    MigrationStage.custom(
      fromVersion: Wines1.self, toVersion: Wines2.self, willMigrate: nil,
      didMigrate: { context in
        for wine in try context.fetch(FetchDescriptor<Wines2.Wine>()) { wine.year = "2001" }
      })
  ]
}

/// In the second version the items have an order, which rebuilds their table.
private enum Boxes1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Box.self, Item.self] }

  @Model final class Box {
    @Relationship(inverse: \Item.box) var items: [Item] = []
    init() {}
  }

  @Model final class Item {
    var name: String?
    var box: Box?
    init() {}
  }
}

private enum Boxes2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Box.self, Item.self] }

  @Model final class Box {
    @Relationship(.ordered, inverse: \Item.box) var items: [Item] = []
    init() {}
  }

  @Model final class Item {
    var name: String?
    var box: Box?
    init() {}
  }
}

private enum BoxPlan: SchemaMigrationPlan {
  static let schemas: [any VersionedSchema.Type] = [Boxes1.self, Boxes2.self]
  static let stages = [MigrationStage.lightweight(fromVersion: Boxes1.self, toVersion: Boxes2.self)]
}

@Suite("Triggers and views of the app in a change of schema", .serialized)
struct AppCodeTests {
  private let folder: TemporaryFolder
  private let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path("a.store")
    setenv("INSTAR_STATE_DIR", folder.path("state"), 1)
  }

  private func makeSongs(_ code: String) throws {
    let container = try ModelContainer(
      for: Schema(versionedSchema: Songs1.self),
      configurations: ModelConfiguration(url: URL(filePath: path)))
    let context = ModelContext(container)
    for name in ["a", "b", "c"] { context.insert(Songs1.Song(name: name)) }
    try context.save()
    try container.close()
    try execute(code)
  }

  private func makeWines(_ code: String) throws {
    try execute(
      """
      CREATE TABLE wine (id INTEGER PRIMARY KEY, name TEXT NOT NULL, year TEXT);
      INSERT INTO wine VALUES (1, 'a', NULL), (2, 'b', '1999'), (3, 'c', NULL);
      """ + code)
  }

  private func execute(_ sql: String) throws {
    let queue = try DatabaseQueue(path: path)
    try queue.write { try $0.execute(sql: sql) }
    try queue.close()
  }

  private func read<Value: DatabaseValueConvertible>(_ sql: String) throws -> [Value] {
    let queue = try DatabaseQueue(path: path)
    defer { try? queue.close() }
    return try queue.read { try Value.fetchAll($0, sql: sql) }
  }

  /// Migrates the store as an app does: with a clone that is verified before it becomes the store.
  private func migrate(
    _ schema: any VersionedSchema.Type, _ plan: any SchemaMigrationPlan.Type
  ) throws {
    let container = try ModelContainer(
      for: Schema(versionedSchema: schema), migrationPlan: plan,
      configurations: ModelConfiguration(url: URL(filePath: path)))
    try container.close()
  }

  // MARK: Triggers do not fire

  @Test("no trigger fires on renumbered and filled rows, in the Core Data format")
  func silentCoreDataTrigger() throws {
    try makeSongs(
      """
      CREATE TRIGGER t AFTER UPDATE ON ZSONG
      BEGIN UPDATE ZSONG SET ZPLAYS = 99 WHERE Z_PK = new.Z_PK; END;
      CREATE TRIGGER listed AFTER UPDATE ON Z_PRIMARYKEY BEGIN DELETE FROM ZSONG; END;
      """)
    try migrate(Songs2.self, SongPlan.self)
    #expect(
      try read("SELECT ZTITLE || ZPLAYS || Z_ENT FROM ZSONG ORDER BY 1") == ["a02", "b02", "c02"])
    try execute("UPDATE ZSONG SET ZTITLE = 'd' WHERE ZTITLE = 'a'")
    #expect(try read("SELECT ZPLAYS FROM ZSONG WHERE ZTITLE = 'd'") == [99])
  }

  @Test("no trigger fires on the copied rows of a rebuild, in a plain store")
  func silentPlainTrigger() throws {
    try makeWines(
      """
      CREATE TRIGGER updated AFTER UPDATE ON wine BEGIN UPDATE wine SET name = 'fired'; END;
      CREATE TRIGGER deleted AFTER DELETE ON wine BEGIN UPDATE wine SET name = 'fired'; END;
      CREATE TRIGGER added AFTER INSERT ON wine BEGIN UPDATE wine SET name = 'fired'; END;
      """)
    try migrate(Wines2.self, WinePlan.self)
    #expect(
      try read("SELECT label || year FROM wine ORDER BY id") == ["aunknown", "b1999", "cunknown"])
    try execute("DELETE FROM wine WHERE id = 3")
    #expect(try read("SELECT DISTINCT label FROM wine") == ["fired"])
  }

  @Test("a trigger fires on what the plan's code writes, in the Core Data format")
  func loudCoreDataTrigger() throws {
    try makeSongs(
      """
      CREATE TRIGGER t AFTER UPDATE ON ZSONG WHEN new.ZPLAYS = 1
      BEGIN UPDATE ZSONG SET ZPLAYS = 50 WHERE Z_PK = new.Z_PK; END;
      """)
    try migrate(Songs2.self, CountingSongPlan.self)
    #expect(try read("SELECT ZPLAYS FROM ZSONG") == [50, 50, 50])
  }

  @Test("a trigger fires on what the plan's code writes, in a plain store")
  func loudPlainTrigger() throws {
    try makeWines(
      """
      CREATE TABLE dated (year);
      CREATE TRIGGER t AFTER UPDATE ON wine BEGIN INSERT INTO dated VALUES (new.year); END;
      """)
    try migrate(Wines2.self, CountingWinePlan.self)
    #expect(try read("SELECT year FROM dated") == ["2001", "2001", "2001"])
  }

  // MARK: They name what is renamed

  @Test("views and triggers that name a renamed attribute name its new column")
  func renamedAttribute() throws {
    try makeSongs(
      """
      CREATE VIEW names AS SELECT Z_PK, ZNAME FROM ZSONG WHERE ZNAME IS NOT NULL;
      CREATE TRIGGER t AFTER UPDATE OF ZNAME ON ZSONG WHEN new.ZNAME <> old.ZNAME
      BEGIN UPDATE ZSONG SET ZPLAYS = 7 WHERE ZNAME = new.ZNAME; END;
      """)
    try migrate(Songs2.self, SongPlan.self)
    #expect(try read("SELECT ZTITLE FROM names ORDER BY 1") == ["a", "b", "c"])
    try execute("UPDATE ZSONG SET ZTITLE = 'd' WHERE ZTITLE = 'a'")
    #expect(try read("SELECT ZPLAYS FROM ZSONG WHERE ZTITLE = 'd'") == [7])
  }

  @Test("views and triggers that name a renamed table name its new one")
  func renamedTable() throws {
    try makeSongs(
      """
      CREATE VIEW names AS SELECT ZNAME FROM ZSONG;
      CREATE TRIGGER t AFTER UPDATE OF ZNAME ON ZSONG BEGIN UPDATE ZSONG SET ZPLAYS = 7; END;
      """)
    try migrate(Tracks2.self, TrackPlan.self)
    #expect(try read("SELECT ZNAME FROM names ORDER BY 1") == ["a", "b", "c"])
    try execute("UPDATE ZTRACK SET ZNAME = 'd' WHERE ZNAME = 'a'")
    #expect(try read("SELECT DISTINCT ZPLAYS FROM ZTRACK") == [7])
  }

  @Test("views and triggers that name a renamed plain table name its new one")
  func renamedPlainTable() throws {
    try makeWines(
      """
      CREATE VIEW names AS SELECT w.name FROM wine AS w JOIN wine ON wine.id = w.id;
      CREATE TRIGGER t AFTER UPDATE OF name ON wine BEGIN UPDATE wine SET year = '7'; END;
      """)
    try migrate(Bottles2.self, BottlePlan.self)
    #expect(try read("SELECT name FROM names ORDER BY 1") == ["a", "b", "c"])
    try execute("UPDATE bottle SET name = 'd' WHERE name = 'a'")
    #expect(try read("SELECT DISTINCT year FROM bottle") == ["7"])
  }

  @Test(
    "a view or trigger that names a removed attribute is refused by plan and run, with its name",
    arguments: [
      "CREATE VIEW shelves AS SELECT ZSHELF FROM ZBOOK",
      "CREATE TRIGGER shelves AFTER UPDATE ON ZBOOK BEGIN SELECT new.ZSHELF; END",
      "CREATE TRIGGER shelves AFTER DELETE ON ZBOOK BEGIN UPDATE ZBOOK SET ZSHELF = 'a'; END",
      "CREATE TRIGGER shelves AFTER DELETE ON ZBOOK BEGIN INSERT INTO ZBOOK (ZSHELF) VALUES (1); END",
      "CREATE TRIGGER shelves AFTER UPDATE OF ZSHELF ON ZBOOK BEGIN SELECT 1; END",
    ])
  func removedAttribute(_ code: String) throws {
    let layout = try Schema(versionedSchema: ShelfV1.self).layout()
    let ddl = StoreDDL(statements: try layout.emptyStoreStatements() + [code])
    let refusal = #expect(throws: InstarError.self) {
      _ = try PlanDefinition(ShelfPlan.self).migration(from: Schema.Version(1, 0, 0), of: ddl)
    }
    #expect(refusal?.cause.contains("shelves") == true)
    try ModelContainer(
      for: Schema(versionedSchema: ShelfV1.self),
      configurations: ModelConfiguration(url: URL(filePath: path))
    ).close()
    try execute(code)
    let failure = #expect(throws: (any Error).self) { try migrate(ShelfV3.self, ShelfPlan.self) }
    #expect(failure.map { "\($0)" }?.contains("shelves") == true)
    #expect(try read("SELECT count(ZSHELF) FROM ZBOOK") == [0])
  }

  @Test(
    "a view or trigger that names a rebuilt table of the Core Data format is refused by plan, with its name",
    arguments: [
      "CREATE VIEW names AS SELECT ZNAME FROM ZITEM",
      "CREATE TRIGGER names AFTER UPDATE ON ZITEM BEGIN SELECT new.ZNAME; END",
    ])
  func rebuiltTable(_ code: String) throws {
    let layout = try Schema(versionedSchema: Boxes1.self).layout()
    let ddl = StoreDDL(statements: try layout.emptyStoreStatements() + [code])
    let refusal = #expect(throws: InstarError.self) {
      _ = try PlanDefinition(BoxPlan.self).migration(from: Schema.Version(1, 0, 0), of: ddl)
    }
    #expect(
      refusal?.cause.hasSuffix("'names' uses table ZITEM, which this stage rebuilds") == true)
  }

  @Test("views and triggers that name a renamed column of a rebuilt table name its new one")
  func renamedColumn() throws {
    try makeWines(
      """
      CREATE VIEW names AS SELECT id, name FROM wine WHERE name IS NOT NULL;
      CREATE TRIGGER t AFTER UPDATE OF name ON wine WHEN new.name <> old.name
      BEGIN UPDATE wine SET year = '7' WHERE name = new.name; END;
      """)
    try migrate(Wines2.self, WinePlan.self)
    #expect(try read("SELECT label FROM names ORDER BY 1") == ["a", "b", "c"])
    try execute("UPDATE wine SET label = 'd' WHERE label = 'a'")
    #expect(try read("SELECT year FROM wine WHERE label = 'd'") == ["7"])
  }

  @Test("a trigger that SQLite could never compile does not hide one that the change breaks")
  func brokenTriggers() throws {
    let layout = try Schema(versionedSchema: ShelfV1.self).layout()
    func plan(_ code: [String]) throws {
      let ddl = StoreDDL(statements: try layout.emptyStoreStatements() + code)
      _ = try PlanDefinition(ShelfPlan.self).migration(from: Schema.Version(1, 0, 0), of: ddl)
    }
    let own = "CREATE TRIGGER own AFTER DELETE ON ZBOOK BEGIN SELECT function_of_the_app(); END"
    try plan([own])
    let refusal = #expect(throws: InstarError.self) {
      try plan([
        own, "CREATE TRIGGER shelves AFTER DELETE ON ZBOOK BEGIN UPDATE ZBOOK SET ZSHELF = 1; END",
      ])
    }
    #expect(refusal?.cause.contains("trigger 'shelves'") == true)
  }

  @Test("a view that was broken before the migration is named, with what to do")
  func brokenView() throws {
    try makeWines("CREATE VIEW lost AS SELECT * FROM missing;")
    let failure = #expect(throws: (any Error).self) { try migrate(Wines2.self, WinePlan.self) }
    let text = failure.map { "\($0)" } ?? ""
    #expect(text.contains("view lost: no such table: main.missing"))
    #expect(text.contains("let the app drop the view before"))
  }

  // MARK: Search indexes

  private func searchIndex(_ module: String, _ column: String) -> String {
    """
    CREATE VIRTUAL TABLE words USING \(module)(\(column), content='wine'\(module == "fts5" ? ", content_rowid='id'" : ""));
    INSERT INTO words (words) VALUES ('rebuild');
    """
  }

  @Test(
    "a search index over rows that a rebuild fills is rebuilt, and the plan shows it",
    arguments: ["fts4", "fts5"])
  func searchIndexOfFilledRows(_ module: String) throws {
    let code = searchIndex(module, "year")
    try makeWines(code)
    try migrate(Wines2.self, WinePlan.self)
    let found: [Int] = try read(
      "SELECT rowid FROM words WHERE words MATCH 'unknown' ORDER BY rowid")
    #expect(found == [1, 3])
    let ddl = StoreDDL(statements: [
      "CREATE TABLE wine (id INTEGER PRIMARY KEY, name TEXT NOT NULL, year TEXT)",
      String(code.prefix { $0 != ";" }),
    ])
    let plan = try PlanDefinition(WinePlan.self).migration(from: Schema.Version(1, 0, 0), of: ddl)
    let statements = plan.stages.flatMap(\.planned).flatMap(\.statements).map(\.sql)
    #expect(statements.last == "INSERT INTO words (words) VALUES ('rebuild')")
  }

  @Test("a search index over a renamed column is refused, with what to drop")
  func searchIndexOfRenamedColumn() throws {
    try makeWines(searchIndex("fts5", "name"))
    let failure = #expect(throws: (any Error).self) { try migrate(Wines2.self, WinePlan.self) }
    let text = failure.map { "\($0)" } ?? ""
    #expect(text.contains("virtual table 'words' uses a table or column"))
    #expect(text.contains("let the app drop the virtual table before"))
  }

  @Test("a search index that only the app can build is refused by name where its rows change")
  func searchIndexOfSomeRows() throws {
    try makeWines(
      searchIndex("fts5", "year")
        + "INSERT INTO words (words, rowid, year) VALUES ('delete', 2, '1999');")
    let failure = #expect(throws: (any Error).self) { try migrate(Wines2.self, WinePlan.self) }
    #expect(failure.map { "\($0)" }?.contains("search index 'words'") == true)
    #expect(try read("SELECT year FROM wine WHERE id = 2") == ["1999"])
  }

  @Test("a search index that only the app can build stays where its rows do not change")
  func searchIndexOfOtherColumns() throws {
    try makeWines(
      """
      ALTER TABLE wine ADD COLUMN story TEXT DEFAULT 'long';
      \(searchIndex("fts5", "story"))
      INSERT INTO words (words, rowid, story) VALUES ('delete', 2, 'long');
      """)
    try migrate(Wines2.self, WinePlan.self)
    #expect(try read("SELECT rowid FROM words WHERE words MATCH 'long' ORDER BY rowid") == [1, 3])
  }
}
