import Foundation
import Instar
import InstarEngine
import InstarWire
import Testing

@Suite("Checking a plan before any store is touched")
struct PlanDefinitionTests {
  @Test("stages are ordered, whatever order they are given in")
  func order() throws {
    let plan = try PlanDefinition(ShelfPlan.self)
    #expect(plan.name == "ShelfPlan")
    let path = try plan.path(from: Schema.Version(1, 1, 0))
    #expect(path.map(\.manifest.from.description) == ["1.1.0", "2.0.0"])
    #expect(try plan.path(from: Schema.Version(3, 0, 0)).isEmpty)
  }

  @Test("every statement of a lightweight stage is known beforehand")
  func statements() throws {
    let migration = try PlanDefinition(ShelfPlan.self).migration(from: Schema.Version(1, 0, 0))
    #expect(
      migration.stages[0].statements == [
        "DROP INDEX Z_1BOOKS_Z_2BOOKS_INDEX",
        "ALTER TABLE Z_1BOOKS RENAME TO Z_2BOOKS",
        "ALTER TABLE ZAUTHOR ADD COLUMN ZAGENCY INTEGER",
        "ALTER TABLE ZBOOK DROP COLUMN ZSHELF",
        "ALTER TABLE ZBOOK RENAME COLUMN ZPAGES TO ZPAGESOLD",
        "ALTER TABLE ZBOOK RENAME COLUMN ZNAME TO ZTITLE",
        "ALTER TABLE ZBOOK ADD COLUMN ZPAGESNEW INTEGER",
        "ALTER TABLE ZBOOK ADD COLUMN ZRATING FLOAT",
        "UPDATE ZBOOK SET ZRATING = 2.5 WHERE ZRATING IS NULL",
        "UPDATE ZBOOK SET ZLANGUAGE = 'it''s \"en\"' WHERE ZLANGUAGE IS NULL",
        "ALTER TABLE Z_2BOOKS RENAME COLUMN Z_1AUTHORS TO Z_2AUTHORS",
        "ALTER TABLE Z_2BOOKS RENAME COLUMN Z_2BOOKS TO Z_3BOOKS",
        "CREATE TABLE ZAGENCY ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZNAME VARCHAR )",
        "UPDATE ZAUTHOR SET Z_ENT = CASE Z_ENT WHEN 1 THEN 2 END WHERE Z_ENT IN (1)",
        "UPDATE ZBOOK SET Z_ENT = CASE Z_ENT WHEN 2 THEN 3 END WHERE Z_ENT IN (2)",
        "UPDATE Z_PRIMARYKEY SET Z_ENT = -2 WHERE Z_ENT = 1",
        "UPDATE Z_PRIMARYKEY SET Z_ENT = -3 WHERE Z_ENT = 2",
        "UPDATE Z_PRIMARYKEY SET Z_ENT = -Z_ENT WHERE Z_ENT < 0",
        "INSERT INTO Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) VALUES (1, 'Agency', 0, 0)",
        "CREATE INDEX ZAUTHOR_ZAGENCY_INDEX ON ZAUTHOR (ZAGENCY)",
        "CREATE INDEX Z_2BOOKS_Z_3BOOKS_INDEX ON Z_2BOOKS (Z_3BOOKS, Z_2AUTHORS)",
      ])
    let rename = try #require(
      migration.stages[0].planned.first { $0.reason == "renames Book.name to title" })
    #expect(
      rename
        == PlannedChange(
          kind: .rename, reason: "renames Book.name to title", entity: "Book", property: "title",
          table: "ZBOOK", column: "ZTITLE",
          statements: [
            PlannedStatement(
              position: 6, sql: "ALTER TABLE ZBOOK RENAME COLUMN ZNAME TO ZTITLE",
              comment: "renames column ZNAME to ZTITLE")
          ]))
    let removed = migration.stages[0].planned.first {
      $0.entity == "Book" && $0.property == "shelf"
    }
    #expect(removed?.kind == .destructive)
    #expect(removed?.statements.map(\.sql) == ["ALTER TABLE ZBOOK DROP COLUMN ZSHELF"])
  }

  @Test("the JSON of a stage has its changes, and their sentences and statements as lists")
  func stageJSON() throws {
    let stage = try #require(
      try PlanDefinition(ShelfPlan.self).migration(from: Schema.Version(1, 0, 0)).stages.first)
    let json = try JSONEncoder().encode(stage)
    #expect(try JSONDecoder().decode(PlannedMigration.Stage.self, from: json) == stage)
    let object = try #require(try JSONSerialization.jsonObject(with: json) as? [String: Any])
    #expect(object["statements"] as? [String] == stage.statements)
    #expect(object["changes"] as? [String] == stage.changes)
    #expect((object["planned"] as? [[String: Any]])?.count == stage.planned.count)
  }

  @Test(
    "a missing stage that needs code, two stages from one version, a stage to an unknown version, a step back, twins: each is named"
  )
  func invalidPlans() throws {
    func error(_ plan: any SchemaMigrationPlan.Type) -> InstarError? {
      #expect(throws: InstarError.self) {
        _ = try PlanDefinition(plan).path(from: Schema.Version(1, 0, 0))
      }
    }
    let gap = error(Gap.self)
    #expect(gap?.code == .noMigrationPath)
    #expect(
      gap?.cause
        == "no stage starts at 1.0.0, and a lightweight stage to 2.0.0 is not possible: values of Item.size must be converted from String to Int"
    )
    #expect(
      gap?.next?.hasPrefix("add a stage:\n.custom(fromVersion: Sizes1.self, toVersion: Sizes2")
        == true)
    #expect(error(Fork.self)?.cause == "two stages start at 1.0.0")
    #expect(error(Stranger.self)?.cause.contains("names version 3.0.0") == true)
    #expect(error(Back.self)?.cause.contains("does not end at a later version") == true)
    #expect(
      error(Twins.self)?.cause
        == "the schemas ShelfV1 and ShelfV1 have the same version, 1.0.0")
  }

  @Test("a lightweight stage that needs code is refused with the stage to write")
  func needsCustomStage() throws {
    let error = #expect(throws: InstarError.self) {
      _ = try PlanDefinition(TooLight.self).migration(from: Schema.Version(1, 0, 0))
    }
    #expect(error?.code == .needsCustomStage)
    #expect(
      error?.cause.contains("values of Item.size must be converted from String to Int") == true
    )
    #expect(
      error?.next?.contains(".custom(fromVersion: Sizes1.self, toVersion: Sizes2.self") == true)
  }

  enum Gap: SchemaMigrationPlan {
    static let schemas: [any VersionedSchema.Type] = [Sizes1.self, Sizes2.self]
    static let stages: [MigrationStage] = []
  }

  enum Fork: SchemaMigrationPlan {
    static let schemas: [any VersionedSchema.Type] = [ShelfV1.self, ShelfV1_1.self, ShelfV2.self]
    static var stages: [MigrationStage] {
      [ShelfPlan.addAgency, .lightweight(fromVersion: ShelfV1.self, toVersion: ShelfV2.self)]
    }
  }

  enum Stranger: SchemaMigrationPlan {
    static let schemas: [any VersionedSchema.Type] = [ShelfV1.self, ShelfV1_1.self]
    static var stages: [MigrationStage] {
      [.lightweight(fromVersion: ShelfV1.self, toVersion: ShelfV3.self)]
    }
  }

  enum Back: SchemaMigrationPlan {
    static let schemas: [any VersionedSchema.Type] = [ShelfV1.self, ShelfV1_1.self]
    static var stages: [MigrationStage] {
      [.lightweight(fromVersion: ShelfV1_1.self, toVersion: ShelfV1.self)]
    }
  }

  enum Twins: SchemaMigrationPlan {
    static let schemas: [any VersionedSchema.Type] = [ShelfV1.self, ShelfV1.self]
    static let stages: [MigrationStage] = []
  }

  enum TooLight: SchemaMigrationPlan {
    static let schemas: [any VersionedSchema.Type] = [Sizes1.self, Sizes2.self]
    static var stages: [MigrationStage] {
      [.lightweight(fromVersion: Sizes1.self, toVersion: Sizes2.self)]
    }
  }
}

enum Sizes1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Item.self] }
  @Model
  final class Item {
    var size: String
    init(size: String) { self.size = size }
  }
}

enum Sizes2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Item.self] }
  @Model
  final class Item {
    var size: Int
    init(size: Int) { self.size = size }
  }
}
