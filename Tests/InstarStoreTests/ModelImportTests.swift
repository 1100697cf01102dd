import Foundation
import GRDB
import InstarSchema
import Testing

@testable import InstarStore
@testable import InstarTestSupport

/// Models whose store must equal its own import.
@Suite("Importing the model of a store")
struct ModelImportTests {
  private let folder: TemporaryFolder
  private var path: String { folder.path("a.store") }

  init() throws { folder = try TemporaryFolder() }

  private static let transient: [String: ModelArchive.Value] = ["NSIsTransient": .boolean(true)]

  /// Notes in folders, with a transient relationship and indexes that Core Data does not make.
  private static func model(hasTransientInverse: Bool = false) -> ArchivedModel {
    var draft = ArchivedModel.Property.toOne("draft", "Note", inverse: "drafts")
    draft.fields.merge(transient) { $1 }
    var shelf = ArchivedModel.Property.toOne("shelf", "Note", inverse: nil)
    shelf.fields.merge(transient) { $1 }
    return ArchivedModel(
      entities: [
        ArchivedModel.Entity(
          name: "Folder", properties: [.toMany("notes", "Note", inverse: "folder")],
          indexes: [(name: "byNotes", properties: ["notes"])]),
        ArchivedModel.Entity(
          name: "Note",
          properties: [.attribute("title", .string), .toOne("folder", "Folder", inverse: "notes")]
            + (hasTransientInverse
              ? [draft, .toOne("drafts", "Note", inverse: "draft")] : [shelf]),
          indexes: [
            (name: "byFolder", properties: ["folder"]), (name: "byTitle", properties: ["title"]),
          ]),
      ], identifiers: ["1.0.0"])
  }

  /// Makes the store that Core Data makes of the model.
  private func makeStore(_ model: ArchivedModel, _ sql: String) throws {
    let queue = try DatabaseQueue(path: path)
    try queue.write { db in
      for statement in CoreDataLayout.systemTableStatements { try db.execute(sql: statement) }
      let schema = Schema(
        entities: model.entities.map { Schema.Entity(name: $0.name) },
        version: Schema.Version(1, 0, 0))
      try CoreDataMetadata(newStoreFor: schema).write(db)
      for (number, entity) in model.entities.enumerated() {
        try db.execute(
          sql: "INSERT INTO Z_PRIMARYKEY VALUES (?, ?, 0, 0)",
          arguments: [number + 1, entity.name])
      }
      try db.execute(
        sql: "INSERT INTO Z_MODELCACHE VALUES (?)", arguments: [Data(model.packed)])
      try db.execute(sql: sql)
    }
    try queue.close()
  }

  private func requireEqualImport() throws -> StoreIntrospection {
    let (probe, found) = try StoreIntrospection.read(path)
    let layout = try CoreDataLayout(schema: found.schema, conventions: probe.conventions)
    #expect(layout.structure == probe.identity.structure)
    return found
  }

  private static let tables = """
    CREATE TABLE ZFOLDER ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER );
    CREATE TABLE ZNOTE ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZFOLDER INTEGER, ZTITLE VARCHAR );
    CREATE INDEX Z_Note_byTitle ON ZNOTE (ZTITLE COLLATE BINARY ASC);
    """

  @Test(
    "the import of a model leaves out transient relationships, indexes without a column and those of single relationships",
    arguments: [
      ["CREATE INDEX ZNOTE_ZFOLDER_INDEX ON ZNOTE (ZFOLDER)"],
      ["CREATE INDEX Z_Note_byFolder ON ZNOTE (ZFOLDER COLLATE BINARY ASC)"],
      [
        "CREATE INDEX ZNOTE_ZFOLDER_INDEX ON ZNOTE (ZFOLDER)",
        "CREATE INDEX Z_Note_byFolder ON ZNOTE (ZFOLDER COLLATE BINARY ASC)",
      ],
    ])
  func leftOut(_ indexes: [String]) throws {
    try makeStore(Self.model(), Self.tables + indexes.joined(separator: ";\n"))
    let found = try requireEqualImport()
    #expect(found.origin == .modelCache)
    let note = try #require(found.schema.entity(named: "Note"))
    #expect(note.relationships.map(\.name) == ["folder"])
    #expect(note.fetchIndexes.map(\.name) == ["byTitle"])
    #expect(found.schema.entity(named: "Folder")?.fetchIndexes.isEmpty == true)
    #expect(
      found.notes == [
        "Folder: index 'byNotes' is left out: 'notes' has no column",
        "'shelf' of Note is a transient relationship, which is not stored: left out",
      ])
  }

  @Test(
    "the import of a model keeps a relationship whose inverse is transient, without the inverse")
  func transientInverse() throws {
    try makeStore(
      Self.model(hasTransientInverse: true),
      Self.tables + """
        ALTER TABLE ZNOTE ADD COLUMN ZDRAFTS INTEGER;
        CREATE INDEX ZNOTE_ZDRAFTS_INDEX ON ZNOTE (ZDRAFTS);
        CREATE INDEX ZNOTE_ZFOLDER_INDEX ON ZNOTE (ZFOLDER);
        """)
    let found = try requireEqualImport()
    let drafts = try #require(
      found.schema.entity(named: "Note")?.relationshipsByName["drafts"])
    #expect(drafts.inverseName == nil)
  }

  @Test("the import of a model keeps the required fields of a composite required")
  func requiredFields() throws {
    func field(_ name: String, isOptional: Bool) -> ModelArchive.Value {
      .object(
        "NSAttributeDescription",
        [
          "NSPropertyName": .text(name), "NSAttributeType": .integer(700),
          "NSIsOptional": .boolean(isOptional),
        ])
    }
    let model = try CoreDataModel(
      archive: ModelArchive.model([
        (
          "Note",
          [
            (
              "author",
              .object(
                "NSCompositeAttributeDescription",
                [
                  "NSPropertyName": .text("author"), "NSIsOptional": .boolean(false),
                  "NSCompositeElements": .array([
                    field("name", isOptional: false), field("nick", isOptional: true),
                  ]),
                ])
            )
          ]
        )
      ]))
    let note = try #require(model.schema.entity(named: "Note"))
    #expect(note.attributes.map(\.declaration.isRequiredField) == [true, false])
    #expect(note.attributes.map(\.declaration.isRequiredComposite) == [true, true])
    // The columns of a composite take NULL, in the import as in a compiled model.
    #expect(note.attributes.map(\.isOptional) == [true, true])
  }

  @Test("the import of a model names the types of the values that columns of data hold as archives")
  func archivedTypes() throws {
    let model = ArchivedModel(
      entities: [
        ArchivedModel.Entity(
          name: "Note",
          properties: [
            .attribute("empty", .binary), .attribute("photo", .binary),
            .composite("tags", [("flavors", .binary)]),
          ])
      ], identifiers: ["1.0.0"])
    try makeStore(
      model,
      "CREATE TABLE ZNOTE ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZEMPTY BLOB, ZPHOTO BLOB, ZFLAVORS BLOB )"
    )
    let archive = try #require(try ArchivedCollection.archive(of: ["sweet", "sour"]))
    let queue = try DatabaseQueue(path: path)
    try queue.write {
      try $0.execute(
        sql: "INSERT INTO ZNOTE VALUES (1, 1, 1, NULL, NULL, NULL), (2, 1, 1, NULL, x'FFD8', ?)",
        arguments: [archive])
    }
    try queue.close()
    #expect(try requireEqualImport().archivedTypes == ["Note.tags.flavors": "[String]"])
  }

  @Test("the import of a model says why a schema in the metadata is not used")
  func damagedSchema() throws {
    let schema = Schema(
      entities: [
        Schema.Entity(
          name: "Note", attributes: [Schema.Attribute(name: "title", type: .string)])
      ], version: Schema.Version(1, 0, 0))
    let queue = try DatabaseQueue(path: path)
    try queue.write { db in
      for statement in try CoreDataLayout(schema: schema).createStatements {
        try db.execute(sql: statement)
      }
      var plist = CoreDataMetadata(newStoreFor: schema).plist
      plist["InstarSchema"] = "{"
      try CoreDataMetadata(uuid: "", plist: plist).write(db)
    }
    try queue.close()
    let found = try StoreIntrospection.read(path).introspection
    #expect(found.origin == .tables)
    #expect(found.notes.contains { $0.contains("the schema in its metadata is damaged") })
  }
}
