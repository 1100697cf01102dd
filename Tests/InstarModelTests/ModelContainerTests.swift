import GRDB
import Instar
import InstarTestSupport
import Testing

@Suite("A model container")
struct ModelContainerTests {
  @Test("a new store has Core Data's tables, columns and indexes, in Core Data's words")
  func newStoreLayout() throws {
    let folder = try TemporaryFolder()
    let path = folder.path("a.store")
    let container = try ModelContainer(
      for: Schema(versionedSchema: Library.self),
      configurations: ModelConfiguration(url: URL(filePath: path)))
    try container.close()
    #expect(folder.names() == ["a.store"])
    let statements = try DatabaseQueue(path: path).read { db in
      try String.fetchAll(db, sql: "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
    }
    #expect(
      statements == [
        "CREATE TABLE ZFOLDER ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZNAME VARCHAR, ZUID VARCHAR )",
        "CREATE TABLE ZNOTE ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZCOUNT INTEGER, ZISPINNED INTEGER, ZFOLDER INTEGER, ZCREATEDAT TIMESTAMP, ZSCORE FLOAT, ZPRICE DECIMAL, ZTITLE VARCHAR, ZUID VARCHAR, ZKEY BLOB, ZLINK VARCHAR, ZPAYLOAD BLOB )",
        "CREATE TABLE Z_2TAGS ( Z_2NOTES INTEGER, Z_3TAGS INTEGER, PRIMARY KEY (Z_2NOTES, Z_3TAGS) )",
        "CREATE TABLE ZTAG ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZNAME VARCHAR )",
        "CREATE UNIQUE INDEX Z_Folder_UNIQUE_uid ON ZFOLDER (ZUID COLLATE BINARY ASC)",
        "CREATE INDEX ZNOTE_ZFOLDER_INDEX ON ZNOTE (ZFOLDER)",
        "CREATE UNIQUE INDEX Z_Note_UNIQUE_uid ON ZNOTE (ZUID COLLATE BINARY ASC)",
        "CREATE INDEX Z_2TAGS_Z_3TAGS_INDEX ON Z_2TAGS (Z_3TAGS, Z_2NOTES)",
        "CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER)",
        "CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB)",
        "CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB)",
        "CREATE TABLE ACHANGE ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZCHANGETYPE INTEGER, ZENTITY INTEGER, ZENTITYPK INTEGER, ZTRANSACTIONID INTEGER, ZCOLUMNS BLOB )",
        "CREATE TABLE ATRANSACTION ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZAUTHORTS INTEGER, ZBUNDLEIDTS INTEGER, ZCONTEXTNAMETS INTEGER, ZPROCESSIDTS INTEGER, ZTIMESTAMP FLOAT, ZAUTHOR VARCHAR, ZBUNDLEID VARCHAR, ZCONTEXTNAME VARCHAR, ZPROCESSID VARCHAR, ZQUERYGEN BLOB )",
        "CREATE TABLE ATRANSACTIONSTRING ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZNAME VARCHAR )",
        "CREATE INDEX ACHANGE_ZTRANSACTIONID_INDEX ON ACHANGE (ZTRANSACTIONID)",
        "CREATE INDEX ATRANSACTION_ZAUTHORTS_INDEX ON ATRANSACTION (ZAUTHORTS)",
        "CREATE INDEX ATRANSACTION_ZBUNDLEIDTS_INDEX ON ATRANSACTION (ZBUNDLEIDTS)",
        "CREATE INDEX ATRANSACTION_ZCONTEXTNAMETS_INDEX ON ATRANSACTION (ZCONTEXTNAMETS)",
        "CREATE INDEX ATRANSACTION_ZPROCESSIDTS_INDEX ON ATRANSACTION (ZPROCESSIDTS)",
        "CREATE INDEX Z_TRANSACTION_TransactionAuthorIndex ON ATRANSACTION (ZAUTHOR COLLATE BINARY ASC)",
        "CREATE INDEX Z_TRANSACTION_TransactionTimestampIndex ON ATRANSACTION (ZTIMESTAMP COLLATE BINARY ASC)",
        "CREATE UNIQUE INDEX Z_TRANSACTIONSTRING_UNIQUE_NAME ON ATRANSACTIONSTRING (ZNAME COLLATE BINARY ASC)",
      ])
  }

  @Test("a store is opened again with what was saved in it")
  func reopen() throws {
    let folder = try TemporaryFolder()
    let configuration = ModelConfiguration(url: folder.url.appending(path: "a.store"))
    let schema = Schema(versionedSchema: Library.self)
    let first = try ModelContainer(for: schema, configurations: configuration)
    let context = ModelContext(first)
    context.insert(Library.Note(uid: "a", title: "kept"))
    try context.save()
    try first.close()
    let second = try ModelContainer(for: schema, configurations: configuration)
    #expect(
      try ModelContext(second).fetch(FetchDescriptor<Library.Note>()).map(\.title) == ["kept"])
  }

  @Test("keys are never handed out twice, also after the last row is deleted")
  func keysAreNotReused() throws {
    let folder = try TemporaryFolder()
    let path = folder.path("a.store")
    let container = try ModelContainer(
      for: Schema(versionedSchema: Library.self),
      configurations: ModelConfiguration(url: URL(filePath: path)))
    let context = ModelContext(container)
    let first = Library.Tag(name: "first")
    context.insert(first)
    try context.save()
    context.delete(first)
    try context.save()
    context.insert(Library.Tag(name: "second"))
    try context.save()
    try container.close()
    let keys = try DatabaseQueue(path: path).read { db in
      try Int.fetchAll(
        db,
        sql: "SELECT Z_PK FROM ZTAG UNION ALL SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_NAME = 'Tag'")
    }
    #expect(keys == [2, 2])
  }

  @Test("a store of another schema is refused with what is different, and left as it was")
  func otherSchema() throws {
    let folder = try TemporaryFolder()
    let configuration = ModelConfiguration(url: folder.url.appending(path: "a.store"))
    try ModelContainer(for: Schema(versionedSchema: Library.self), configurations: configuration)
      .close()
    let before = try Data(contentsOf: configuration.url)
    let error = #expect(throws: SwiftDataError.self) {
      try ModelContainer(for: Schema([Lonely.self]), configurations: configuration)
    }
    #expect(SwiftDataError.loadIssueModelContainer ~= (error ?? SwiftDataError.unknownSchema))
    #expect(error?.cause?.cause.contains("table ZLONELY is missing") == true)
    #expect(try Data(contentsOf: configuration.url) == before)
  }

  @Test("models that relationships reference need not be named, as in SwiftData")
  func reachedModels() throws {
    let container = try ModelContainer(
      for: Library.Note.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
    #expect(container.schema.entities.map(\.name).sorted() == ["Folder", "Note", "Tag"])
    #expect(Schema([Library.Folder.self]).entitiesByName.keys.contains("Tag"))
  }
}
