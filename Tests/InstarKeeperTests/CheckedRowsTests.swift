import Foundation
import GRDB
import InstarChange
import InstarSchema
import InstarStore
import InstarTestSupport
import InstarWire
import Testing

@testable import InstarKeeper

/// What `instarctl plan` finds in the rows of a store, and what the verification finds after the stages.
@Suite("Checks of rows, before and after the stages")
struct CheckedRowsTests {
  private static let formats = [StoreFormat.coredata, .plain]

  /// Two versions of authors with books, in one of the formats.
  private struct Library {
    var format: StoreFormat
    var isUnique = false
    var requiresName = false
    /// Whether the first version requires the name too, although the tables allow NULL.
    var alwaysRequiresName = false
    /// Whether authors get a required city without an initial value.
    var addsCity = false
    var books: ClosedRange<Int>?
    var kind = StageManifest.Kind.lightweight

    func schema(_ version: Int) -> Schema {
      let isLast = version == 2
      var author = Schema.Entity(
        name: "Author",
        attributes: [
          Schema.Attribute(
            name: "name", type: .string, isOptional: !(isLast && requiresName || alwaysRequiresName)
          )
        ],
        relationships: [
          Schema.Relationship(
            name: "books", destination: "Book", inverseName: "author",
            minimumModelCount: isLast ? books?.lowerBound ?? 0 : 0,
            maximumModelCount: isLast ? books?.upperBound ?? 0 : 0, isToOneRelationship: false)
        ], uniquenessConstraints: isLast && isUnique ? [["name"]] : [])
      var book = Schema.Entity(
        name: "Book",
        attributes: [Schema.Attribute(name: "title", type: .string, isOptional: true)],
        relationships: [
          Schema.Relationship(
            name: "author", destination: "Author", inverseName: "books", maximumModelCount: 1,
            isToOneRelationship: true)
        ])
      if isLast, addsCity {
        author.attributes.append(Schema.Attribute(name: "city", type: .string))
      }
      if format == .plain {
        let key = Schema.Attribute(name: "id", type: .int64, isOptional: false)
        author.attributes.insert(key, at: 0)
        book.attributes.insert(key, at: 0)
        author.table = Schema.Table("author")
        book.table = Schema.Table("book")
      }
      return Schema(entities: [author, book], version: Schema.Version(version, 0, 0))
    }

    var plan: PlanManifest {
      get throws {
        let versions = try [1, 2].map { number in
          let schema = schema(number)
          let structure = try schema.layout().structure
          return VersionManifest(
            schema: schema, structure: structure, fingerprint: structure.fingerprint)
        }
        return PlanManifest(
          name: "LibraryPlan", versions: versions,
          stages: [
            StageManifest(from: Schema.Version(1, 0, 0), to: Schema.Version(2, 0, 0), kind: kind)
          ])
      }
    }

    /// Authors with these names and so many books each.
    func make(at path: String, _ authors: [(name: String?, books: Int)]) throws {
      let schema = schema(1)
      let layout = try schema.layout()
      let queue = try DatabaseQueue(path: path)
      try queue.writeWithoutTransaction { db in
        for statement in try layout.emptyStoreStatements() {
          try db.execute(
            sql: alwaysRequiresName ? statement.replacing(" NOT NULL", with: "") : statement)
        }
        let entities = layout.entityLayouts.keyed(by: \.name)
        let author = try #require(entities["Author"])
        let book = try #require(entities["Book"])
        guard case .column(let owner) = try #require(book.relationships.first).location else {
          throw CocoaError(.featureUnsupported)
        }
        let name = try #require(author.attributes.last).column.name
        for (index, row) in authors.enumerated() {
          try insert(db, author, [name: row.name ?? "NULL"], key: index + 1)
          for number in 0..<row.books {
            try insert(
              db, book, [owner.columns[0]: "\(index + 1)"], key: (index + 1) * 100 + number)
          }
        }
        try layout.stamp(
          schema.version, at: .userVersion,
          metadata: try layout.metadata(newStoreFor: schema).map { metadata in
            var metadata = metadata
            metadata.stamp(
              schema: schema, unchangedEntities: [],
              fingerprint: layout.structure.fingerprint)
            return try metadata.encoded()
          }, db)
      }
      try queue.close()
    }

    private func insert(
      _ db: Database, _ entity: EntityLayout, _ values: [String: String], key: Int
    ) throws {
      var columns = [entity.key.columns[0]: "\(key)"].merging(values) { $1 }
      if let column = entity.entityColumn { columns[column] = "\(entity.number)" }
      let names = columns.keys.sorted()
      let list = names.map { name in
        let value = columns[name] ?? "NULL"
        return value == "NULL" || Int(value) != nil ? value : "'\(value)'"
      }
      try db.execute(
        sql: "INSERT INTO \(entity.table) (\(names.joined(separator: ", "))) "
          + "VALUES (\(list.joined(separator: ", ")))")
    }
  }

  /// What `plan` finds, of these codes.
  private func findings(
    _ library: Library, _ authors: [(name: String?, books: Int)]
  ) throws -> [Finding] {
    let fixture = try KeeperFixture()
    let store = fixture.folder + "/library.store"
    try library.make(at: store, authors)
    let conversation = ScriptedConversation([
      .plan(stores: [store], plans: [fixture.plugin], adopt: nil)
    ])
    try Keeper(conversation: conversation, host: LibraryHost(plan: try library.plan)).serve()
    let report = try #require(conversation.plans.first)
    #expect(report.error == nil, "\(report.error.map(String.init(describing:)) ?? "")")
    return report.findings.filter { $0.code != nil }
  }

  /// - Parameters:
  ///   - broken: What somebody did to the store before the run.
  ///   - sql: What the stage does.
  private func run(
    _ library: Library, _ authors: [(name: String?, books: Int)], broken: String = "",
    sql: String = "", verification: VerificationPolicy = .standard
  ) throws -> (report: RunReport, isUnchanged: Bool) {
    let fixture = try KeeperFixture()
    let store = fixture.folder + "/library.store"
    try library.make(at: store, authors)
    let queue = try DatabaseQueue(path: store)
    try queue.writeWithoutTransaction {
      try $0.execute(sql: "PRAGMA foreign_keys = OFF; " + broken)
    }
    try queue.close()
    let before = FileManager.default.contents(atPath: store)
    var request = fixture.request()
    request.store = store
    request.verification = verification
    let conversation = ScriptedConversation([.migrate(request)])
    try Keeper(
      conversation: conversation, host: LibraryHost(plan: try library.plan, sql: sql)
    ).serve()
    let report = try #require(conversation.reports.first)
    return (report, FileManager.default.contents(atPath: store) == before)
  }

  // MARK: Duplicates

  @Test(
    "plan and run refuse equal values under a new unique constraint, with their rows",
    arguments: formats)
  func duplicates(format: StoreFormat) throws {
    let library = Library(format: format, isUnique: true)
    let found = try findings(
      library, [("a", 0), ("b", 0), ("a", 0), (nil, 0), (nil, 0), ("b", 0)])
    #expect(found.map(\.code) == [.duplicateUniqueValues])
    #expect(found.map(\.severity) == [.error])
    #expect(
      found.map(\.message) == [
        "4 rows of Author have equal values of 'name', which becomes unique in version 2.0.0: rows 1, 2, 3, 6"
      ])
    #expect(found.first?.rows == AffectedRows(count: 4, keys: ["1", "2", "3", "6"]))
    #expect(found.first?.fix?.contains("remove the duplicates in willMigrate") == true)
    #expect(try findings(library, [("a", 0), (nil, 0), (nil, 0)]).isEmpty)
    let (report, isUnchanged) = try run(library, [("a", 0), ("b", 0), ("a", 0)])
    #expect(report.result == .refused && isUnchanged)
    #expect(report.error?.code == .duplicateUniqueValues)
    #expect(report.error?.rows == AffectedRows(count: 2, keys: ["1", "3"]))
    #expect(try run(library, [("a", 0), (nil, 0), (nil, 0)]).report.result == .migrated)
  }

  @Test("equal rows that code can remove first are a warning", arguments: formats)
  func curableDuplicates(format: StoreFormat) throws {
    let found = try findings(
      Library(format: format, isUnique: true, kind: .custom), [("a", 0), ("a", 0)])
    #expect(found.map(\.severity) == [.warning])
    #expect(found.first?.message.hasSuffix("fails unless the plan's code changes them") == true)
  }

  // MARK: Required values

  @Test(
    "plan and run refuse rows without a value of an attribute that becomes required",
    arguments: formats)
  func required(format: StoreFormat) throws {
    let library = Library(format: format, requiresName: true)
    let found = try findings(library, [("a", 0), (nil, 0), (nil, 0)])
    #expect(found.map(\.code) == [.needsCustomStage])
    #expect(found.map(\.severity) == [.error])
    #expect(found.first?.message.hasSuffix("2 rows of Author (rows 2, 3)") == true)
    #expect(try findings(library, [("a", 0)]).isEmpty)
    let (report, isUnchanged) = try run(library, [("a", 0), (nil, 0)])
    #expect(report.result == .refused && isUnchanged)
    #expect(report.error?.rows == AffectedRows(count: 1, keys: ["2"]))
  }

  @Test(
    "rows without a required value that code can write are a warning, and are refused if it does not write them",
    arguments: formats)
  func curableRequired(format: StoreFormat) throws {
    let library = Library(format: format, requiresName: true, kind: .custom)
    let found = try findings(library, [("a", 0), (nil, 0)])
    #expect(found.map(\.code) == [.missingRequiredValues])
    #expect(found.map(\.severity) == [.warning])
    #expect(
      found.first?.message
        == "1 row of Author has no value of 'name', which version 2.0.0 requires: row 2; the run fails unless the "
        + "plan's code changes them")
    if format == .coredata {
      let (report, isUnchanged) = try run(library, [("a", 0), (nil, 0), (nil, 0)])
      #expect(report.result == .failed && isUnchanged)
      #expect(
        report.error?.cause
          == "2 rows of Author have no value for the required property 'name': rows 2, 3")
    }
  }

  @Test(
    "rows without a value that both versions require are counted by plan, and no default is advised for them",
    arguments: formats)
  func alwaysRequired(format: StoreFormat) throws {
    let library = Library(format: format, alwaysRequiresName: true)
    let cure =
      "write these values in the app, or make the stage a custom one and set them in willMigrate"
    let found = try findings(library, [("a", 0), (nil, 0), (nil, 0)])
    #expect(found.map(\.code) == [.missingRequiredValues])
    #expect(found.map(\.severity) == [.warning])
    #expect(
      found.map(\.message) == [
        "2 rows of Author have no value of 'name', which versions 1.0.0 and 2.0.0 require: rows 2, 3; the run fails "
          + "unless the plan's code changes them"
      ])
    #expect(found.map(\.fix) == [cure])
    #expect(try findings(library, [("a", 0)]).isEmpty)
    let (report, isUnchanged) = try run(library, [("a", 0), (nil, 0)])
    #expect(report.error?.code == .missingRequiredValues && isUnchanged)
    #expect(report.error?.next?.hasPrefix(cure) == true)
  }

  @Test(
    "a new required column of an ordinary table is a warning if code runs first, and else an error")
  func newColumn() throws {
    let cure =
      "give Author.city an initial value, which didMigrate can replace; or set it in a Transform of a transform stage; "
      + "or add Author.city as optional in one version, set it in didMigrate, and require it in the next version"
    let library = Library(format: .plain, addsCity: true, kind: .custom)
    let found = try findings(library, [("a", 0), ("b", 0)])
    #expect(found.map(\.code) == [.missingRequiredValues])
    #expect(found.map(\.severity) == [.warning])
    #expect(
      found.map(\.message) == [
        "2 rows of Author have no value of 'city', which is new and required in version 2.0.0, and must have one "
          + "before didMigrate runs: rows 1, 2; the run fails unless the plan's code removes these rows first"
      ])
    #expect(found.map(\.fix) == [cure])
    #expect(try findings(library, []).isEmpty)
    let (report, isUnchanged) = try run(library, [("a", 0), ("b", 0)])
    #expect(report.result == .failed && isUnchanged)
    #expect(report.error?.code == .missingRequiredValues)
    #expect(report.error?.next?.hasPrefix(cure) == true)
    #expect(
      try findings(Library(format: .coredata, addsCity: true, kind: .custom), [("a", 0)]).isEmpty)

    let refused = try findings(Library(format: .plain, addsCity: true), [("a", 0)])
    #expect(refused.map(\.code) == [.needsCustomStage])
    #expect(refused.map(\.severity) == [.error])
    #expect(refused.map(\.fix) == [cure])
  }

  // MARK: Counts

  @Test(
    "plan and run refuse fewer or more models than a new limit allows, with the owners",
    arguments: formats)
  func counts(format: StoreFormat) throws {
    let library = Library(format: format, books: 1...2)
    let authors: [(name: String?, books: Int)] = [("a", 0), ("b", 1), ("c", 3), ("d", 2)]
    let found = try findings(library, authors)
    #expect(found.map(\.code) == [.modelCount])
    #expect(found.map(\.severity) == [.error])
    #expect(
      found.map(\.message) == [
        "2 rows of Author have fewer or more models in 'books' than version 2.0.0 allows, which is 1 to 2: rows 1, 3"
      ])
    #expect(try findings(library, [("b", 1), ("d", 2)]).isEmpty)
    let (refused, isUnchanged) = try run(library, authors)
    #expect(refused.result == .refused && isUnchanged)
    #expect(refused.error?.code == .modelCount)
    #expect(refused.error?.rows == AffectedRows(count: 2, keys: ["1", "3"]))
  }

  @Test(
    "rows beyond a new limit that a stage leaves are refused, and accepted where it corrects them",
    arguments: formats)
  func curableCounts(format: StoreFormat) throws {
    let library = Library(format: format, books: 0...2, kind: .custom)
    #expect(try findings(library, [("c", 3)]).map(\.severity) == [.warning])
    let (left, isUnchanged) = try run(library, [("a", 1), ("c", 3)])
    #expect(left.result == .failed && isUnchanged)
    #expect(left.error?.code == .modelCount)
    #expect(
      left.error?.cause
        == "1 row of Author has fewer or more models in 'books' than version 2.0.0 allows, which is at most 2: row 2"
    )
    let sql =
      format == .plain
      ? "DELETE FROM book WHERE id = 200" : "DELETE FROM ZBOOK WHERE Z_PK = 200"
    let corrected = try run(library, [("a", 1), ("c", 3)], sql: sql).report
    #expect(corrected.result == .migrated, "\(corrected.error?.cause ?? "")")
  }

  // MARK: Links

  @Test(
    "links to missing rows that a stage leaves end the run, with their rows", arguments: formats)
  func brokenLinks(format: StoreFormat) throws {
    let library = Library(format: format, kind: .custom)
    let sql =
      format == .plain
      ? "PRAGMA foreign_keys = OFF; UPDATE book SET author_id = 99 WHERE id = 100"
      : "UPDATE ZBOOK SET ZAUTHOR = 99 WHERE Z_PK = 100"
    let (report, isUnchanged) = try run(library, [("a", 2)], sql: sql)
    #expect(report.result == .failed && isUnchanged)
    #expect(report.error?.code == .brokenReferences)
    #expect(report.error?.rows == AffectedRows(count: 1, keys: ["100"]))
    #expect(report.error?.cause.contains("reference missing rows: row 100") == true)
  }

  @Test(
    "a row that a stage removes breaks the links to it, although no link changed",
    arguments: formats)
  func removedTarget(format: StoreFormat) throws {
    let library = Library(format: format, kind: .custom)
    let table = format == .plain ? "author WHERE id" : "ZAUTHOR WHERE Z_PK"
    let (report, isUnchanged) = try run(
      library, [("a", 1), ("b", 1)], sql: "PRAGMA foreign_keys = OFF; DELETE FROM \(table) = 2")
    #expect(report.result == .failed && isUnchanged)
    #expect(report.error?.code == .brokenReferences)
    #expect(report.error?.rows == AffectedRows(count: 1, keys: ["200"]))
  }

  @Test(
    "links that were broken before the run may stay, and no more may break", arguments: formats)
  func earlierBrokenLinks(format: StoreFormat) throws {
    let library = Library(format: format, kind: .custom)
    let (books, author) = format == .plain ? ("book", "author_id") : ("ZBOOK", "ZAUTHOR")
    let (key, title) = format == .plain ? ("id", "title") : ("Z_PK", "ZTITLE")
    func change(_ sql: String) throws -> RunReport {
      try run(
        library, [("a", 3)], broken: "UPDATE \(books) SET \(author) = 99 WHERE \(key) = 100",
        sql: "PRAGMA foreign_keys = OFF; " + sql
      ).report
    }
    #expect(try change("UPDATE \(books) SET \(title) = 'x'").result == .migrated)
    // The broken link moves to another row.
    #expect(
      try change("UPDATE \(books) SET \(author) = 100 - \(author) WHERE \(key) < 102").result
        == .migrated)
    let refused = try change("UPDATE \(books) SET \(author) = 99 WHERE \(key) = 101")
    #expect(refused.result == .failed && refused.error?.code == .brokenReferences)
    #expect(refused.error?.rows == AffectedRows(count: 2, keys: ["100", "101"]))
    #expect(refused.error?.cause.contains("before the run 1 did") == true)
  }

  @Test(
    "foreign keys that no model describes are checked too, beside one that cannot be checked",
    arguments: [
      "", "CREATE TABLE odd (name REFERENCES author (name)); INSERT INTO odd VALUES ('x');",
    ])
  func otherForeignKeys(odd: String) throws {
    let library = Library(format: .plain, kind: .custom)
    func change(_ sql: String) throws -> RunReport {
      try run(
        library, [("a", 1)],
        broken:
          odd
          + "CREATE TABLE prize (n INTEGER PRIMARY KEY, winner REFERENCES author); INSERT INTO prize VALUES (1, 1), (2, 8)",
        sql: "PRAGMA foreign_keys = OFF; " + sql
      ).report
    }
    #expect(try change("UPDATE author SET name = 'x'").result == .migrated)
    #expect(try change("UPDATE prize SET n = n + 1 WHERE n > 1").result == .migrated)
    let refused = try change("UPDATE prize SET winner = 7 WHERE n = 1")
    #expect(refused.error?.code == .brokenReferences)
    #expect(
      refused.error?.cause
        == "2 rows violate a foreign key: rows prize 1, prize 2; before the run 1 did")
  }

  @Test(
    "the setting 'verify: full' looks up every link, with the same outcome", arguments: formats)
  func fullVerification(format: StoreFormat) throws {
    let library = Library(format: format, kind: .custom)
    let (books, author) = format == .plain ? ("book", "author_id") : ("ZBOOK", "ZAUTHOR")
    for (change, code) in [
      ("author = author", nil), ("author = 99", InstarError.Code.brokenReferences),
    ] {
      let sql = "UPDATE \(books) SET \(change.replacing("author", with: author))"
      let report = try run(
        library, [("a", 2)], sql: "PRAGMA foreign_keys = OFF; " + sql, verification: .full
      ).report
      #expect(report.error?.code == code)
    }
  }
}

/// One stage: its change of schema is made as the keeper makes it, then some SQL.
private struct LibraryHost: PluginHost {
  var plan: PlanManifest
  var sql = ""

  func describe(plugin: String) throws(InstarError) -> PluginManifest {
    PluginManifest(plans: [plan])
  }

  func plan(
    _ name: String, from version: Schema.Version, plugin: String, store: StoreDDL?
  ) throws(InstarError) -> PlannedMigration {
    PlannedMigration(plan: name, from: version, to: Schema.Version(2, 0, 0), stages: [])
  }

  func migrate(
    _ work: CloneWork, onEvent: (CloneWorkEvent) throws(InstarError) -> Void
  ) throws(InstarError) {
    for stage in work.stages { try onEvent(.stageStarted(stage.manifest)) }
    do {
      let connection = try StoreConnection(path: work.clone, durability: .clone)
      try connection.perform { session in
        for stage in work.stages { _ = try SchemaChange(stage).make(session) }
      }
      try connection.close()
      let queue = try DatabaseQueue(path: work.clone)
      try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
      try queue.close()
    } catch {
      throw InstarError(error, what: "cannot work")
    }
    for stage in work.stages { try onEvent(.stageFinished(stage.manifest)) }
  }
}
