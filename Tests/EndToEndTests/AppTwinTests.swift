import Foundation
import GRDB
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

/// Stores of apps whose files may not be kept here, and the models that the apps' teams would bring: see
/// `Tests/Fixtures/Plugins/Kitchens.swift`.
@Suite("Stores of apps, with models as their teams write them")
struct AppTwinTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func migrate(
    _ path: String, _ arguments: [String] = []
  ) async throws -> RunReport {
    let plugin = try await FixturePlugins.kitchens.value
    let answer = try await CommandLineTool.run(
      ["migrate", path, "--plugin", plugin, "--state-dir", folder.path("state"), "--json"]
        + arguments)
    let report = try #require(try answer.objects(RunReport.self).first)
    #expect(report.result == .migrated, Comment(rawValue: answer.output + answer.messages))
    return report
  }

  private func read<Value>(_ path: String, _ body: (Database) throws -> Value) throws -> Value {
    let queue = try DatabaseQueue(path: path)
    defer { try? queue.close() }
    return try queue.read(body)
  }

  @Test("composites that collide, enums, JSON, many-to-many and links without inverse come through")
  func cocktails() async throws {
    let path = try AppleStore.cocktails.write(to: folder)
    let before = try read(path) { try Row.fetchAll($0, sql: "SELECT * FROM ZCOCKTAIL") }
    let report = try await migrate(path)
    #expect(report.from == Schema.Version(1, 0, 0))
    try read(path) { (db) throws in
      #expect(
        try String.fetchAll(db, sql: "SELECT ZSUMMARY FROM ZCOCKTAIL ORDER BY Z_PK") == [
          "Ernest 1934|Sour+Refreshing|classic coupe|Lime Wheel"
            + "|0.75 fluidOunces Simple Syrup+2.0 fluidOunces White Rum|2",
          "- 0|Stirred+Martini Variation|- rocks|Lime Wheel||0",
          "Jerry 1888||wnd coupe|Cherry+Lemon Twist|3.0 dash White Rum|0",
        ])
      // The fields of a composite that is renamed stand at its new place, so that the other one has the bare name now.
      #expect(
        try String.fetchOne(
          db, sql: "SELECT sql FROM sqlite_schema WHERE name = 'ZCOCKTAIL'")
          == "CREATE TABLE ZCOCKTAIL ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, "
          + "ZYEAR INTEGER, ZDATEADDED TIMESTAMP, ZCOLLECTION VARCHAR, ZGLASS VARCHAR, "
          + "ZPERSON VARCHAR, ZPLACE VARCHAR, ZNAME VARCHAR, ZSUMMARY VARCHAR, "
          + "ZID BLOB, ZID1 BLOB, ZPROFILES BLOB, ZSTYLES BLOB )")
      let after = try Row.fetchAll(db, sql: "SELECT * FROM ZCOCKTAIL ORDER BY Z_PK")
      for (old, new) in zip(before, after) {
        #expect(new["ZID"] as Data? == old["ZID1"] as Data?)
        #expect(new["ZID1"] as Data? == old["ZID"] as Data?)
        #expect(new["ZPROFILES"] as Data? == old["ZPROFILES"] as Data?)
        #expect(new["Z_ENT"] as Int == 2)
      }
      #expect(
        try String.fetchAll(
          db, sql: "SELECT Z_2COCKTAILS || ' ' || Z_3GARNISH FROM Z_2GARNISH ORDER BY 1")
          == ["1 1", "2 1", "416 2", "416 7"])
      #expect(
        try String.fetchAll(
          db, sql: "SELECT Z_PK || ' ' || ifnull(Z2SPEC, '-') FROM ZINGREDIENT ORDER BY Z_PK")
          == ["10 1", "11 1", "1840 416", "1841 -"])
      #expect(
        try String.fetchAll(db, sql: "SELECT Z_NAME || Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT < 16000")
          == ["Bar0", "Cocktail416", "Decoration9", "Ingredient1841", "IngredientBase12"])
    }
  }

  @Test("arrays that SwiftData archived are read, looked into by predicates, and archived again")
  func recipes() async throws {
    let path = try AppleStore.recipes.write(to: folder)
    _ = try await migrate(path)
    try read(path) { (db) throws in
      let images = try Data.fetchAll(db, sql: "SELECT ZIMAGESDATA FROM ZSDRECIPE ORDER BY Z_PK")
      #expect(images.count == 2)
      for data in images {
        let list = try NSKeyedUnarchiver.unarchivedObject(
          ofClasses: [NSArray.self, NSData.self], from: data)
        #expect(
          list as? [Data] == [Data([0xFF, 0xD8, 0xFF]), Data([0x89, 0x50]), Data([1, 2, 3])])
      }
      let tags = try Data.fetchAll(db, sql: "SELECT ZTAGS FROM ZSDRECIPE")
      #expect(tags.allSatisfy { $0.starts(with: Data("bplist00".utf8)) })
      #expect(try Int.fetchAll(db, sql: "SELECT ZCHEF FROM ZSDRECIPE") == [1, 1])
      #expect(
        try String.fetchAll(
          db,
          sql: "SELECT ifnull(ZSYSTEMALL, '-') || ifnull(ZUSER, '-') FROM ZSDFOLDER ORDER BY Z_PK")
          == ["systemAll-", "-user", "-user"])
      // Keys are not given twice, though the rows that had them are gone.
      #expect(
        try Int.fetchOne(db, sql: "SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_NAME = 'SDRecipe'") == 116
      )
    }
  }

  @Test("an entity's links with itself are those of the store's tables, whichever side names them")
  func chats() async throws {
    let path = try AppleStore.messages.write(to: folder, isLogged: false)
    _ = try await migrate(path, ["--adopt", "1.0.0"])
    try read(path) { (db) throws in
      #expect(
        try String.fetchAll(db, sql: "SELECT ZABOUT FROM ZKIKUSER ORDER BY Z_PK") == [
          "|Group||", "Ann+Bob||Bob|", "|Group||Group",
        ])
      #expect(
        try String.fetchAll(
          db, sql: "SELECT Z_4MEMBERSINVERSE || ' ' || Z_4MEMBERS FROM Z_4MEMBERS") == [
            "2 1", "2 5",
          ])
      #expect(
        try String.fetchAll(
          db, sql: "SELECT Z_4BANS || ' ' || Z_4BANSINVERSE FROM Z_4BANSINVERSE") == ["5 2"])
    }
  }

  @Test("a join table that the entity with the greater number names keeps its side, and its order")
  func albums() async throws {
    let path = try AppleStore.photos.write(to: folder)
    _ = try await migrate(path, ["--adopt", "1.0.0"])
    try read(path) { (db) throws in
      #expect(
        try String.fetchAll(
          db, sql: "SELECT ifnull(ZCONTENTS, '-') FROM ZGENERICALBUM ORDER BY Z_PK")
          == ["Winter+Summer", "c.jpg+a.jpg", "b.mov"])
      #expect(
        try String.fetchOne(db, sql: "SELECT sql FROM sqlite_schema WHERE name = 'Z_4ASSETS'")
          == "CREATE TABLE Z_4ASSETS ( Z_4ALBUMS INTEGER, Z_2ASSETS INTEGER, "
          + "Z_FOK_2ASSETS INTEGER, PRIMARY KEY (Z_4ALBUMS, Z_2ASSETS) )")
    }
  }

  @Test("what an app that has the store open has in its log is migrated with the rest")
  func log() async throws {
    let path = try AppleStore.recipes.write(to: folder)
    // The app's own changes, in the log of a connection that stays open.
    let app = try DatabasePool(path: path)
    try await app.write { db in
      try db.execute(sql: "UPDATE ZSDRECIPE SET ZNAME = 'Cold ' || ZNAME, Z_OPT = Z_OPT + 1")
      try db.execute(sql: "DELETE FROM ZSDINGREDIENT WHERE Z_PK = 2")
    }
    let plugin = try await FixturePlugins.kitchens.value
    let probe = try await CommandLineTool.run("probe", path, "--plugin", plugin, "--json")
    #expect(try probe.objects(ProbeReport.self).first?.state == .behind)
    _ = try await migrate(path)
    let names = try await app.read { try String.fetchAll($0, sql: "SELECT ZNAME FROM ZSDRECIPE") }
    #expect(names == ["Cold Gazpacho", "Cold Borscht"])
    let keys = try await app.read {
      try Int.fetchAll($0, sql: "SELECT Z_PK FROM ZSDINGREDIENT ORDER BY Z_PK")
    }
    #expect(keys == [1, 31])
    try app.close()
  }
}
