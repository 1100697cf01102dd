import Foundation
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

@Suite("instarctl plugin new and plugin test")
struct NewPluginTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private struct NewPlugin: Decodable {
    var folder: String
    var plan: String
    var versions: [String]
    var sampleStore: String
    var notes: [String]
  }

  private func run(_ arguments: String...) async throws -> CommandLineTool.Answer {
    try await CommandLineTool.run(
      arguments, in: folder.url, environment: ["INSTAR_STATE_DIR": folder.path("state")])
  }

  @Test("a new plugin builds, passes its own tests, migrates its sample store, and undoes that")
  func whole() async throws {
    let made = try await run("plugin", "new", "Trips", "--json")
    try #require(made.status == 0, Comment(rawValue: made.messages))
    let plugin = try #require(try made.objects(NewPlugin.self).first)
    #expect(plugin.plan == "TripsPlan" && plugin.versions == ["1.0.0", "2.0.0"])

    let tests = try await run("plugin", "test", "Trips")
    #expect(tests.status == 0, "\(tests.output)\(tests.messages)")
    #expect(tests.messages.contains("Test run with 6 tests in 1 suite passed"))

    let built = try await run("plugin", "build", "Trips", "-o", "Trips/Trips.so")
    #expect(built.status == 0, Comment(rawValue: built.messages))
    let check = try await run("plugin", "check", "Trips/Trips.so", "--schemas", "Trips/Schemas")
    #expect(check.status == 0 && check.output.contains("no problem found"), "\(check.output)")

    let store = plugin.sampleStore
    #expect(store.hasSuffix("/Trips/Stores/1.0.0.store"))
    let migrated = try await run("migrate", "--plugin", "Trips/Trips.so", store)
    #expect(migrated.status == 0, Comment(rawValue: migrated.messages))
    #expect(migrated.output.contains("migrated: 1.0.0 → 2.0.0"))
    let restored = try await run("restore", store)
    #expect(restored.status == 0, Comment(rawValue: restored.messages))
    #expect(folder.names().allSatisfy { !$0.contains(".new-") })
  }

  @Test(
    "a failing test fails the command, a filter chooses tests, and one that matches none is an error"
  )
  func failingTest() async throws {
    let made = try await run("plugin", "new", "Trips")
    try #require(made.status == 0, Comment(rawValue: made.messages))
    try folder.write(
      """
      import Testing

      @Test func `this fails`() { #expect(1 == 2) }
      @Test func `this passes`() {}
      """, to: "Trips/Tests/TripsTests/Other.swift")
    let all = try await run("plugin", "test", "Trips", "--json")
    #expect(all.status == 1)
    #expect(all.output.contains("\"passed\":false"))
    #expect(all.messages.contains("Expectation failed: 1 == 2"))
    let one = try await run("plugin", "test", "Trips", "--filter", "this passes")
    #expect(one.status == 0, "\(one.output)\(one.messages)")
    #expect(one.messages.contains("Test run with 1 test"))
    let none = try await run("plugin", "test", "Trips", "--filter", "no such test")
    #expect(none.status == 1)
    #expect(none.messages.contains("no test matches no such test"))
  }

  @Test("without Package.swift too, the plan is compiled without its tests")
  func noPackage() async throws {
    let made = try await run("plugin", "new", "Trips")
    try #require(made.status == 0, Comment(rawValue: made.messages))
    try FileManager.default.removeItem(atPath: folder.path("Trips/Package.swift"))
    try folder.write(
      """
      import Testing

      @testable import Trips

      @Test func `the plan is there`() { #expect(TripsPlan.schemas.count == 2) }
      """, to: "Trips/Tests/TripsTests/Other.swift")
    let tests = try await run("plugin", "test", "Trips", "--filter", "the plan is there")
    #expect(tests.status == 0, "\(tests.output)\(tests.messages)")
    #expect(tests.messages.contains("Test run with 1 test"), "\(tests.messages)")

    // A plan in the folder itself: the compiler would refuse this test.
    try folder.makeFolder("Flat")
    try folder.makeFolder("Flat/Tests")
    let sources = try FileManager.default.contentsOfDirectory(
      atPath: folder.path("Trips/Sources/Trips"))
    for source in sources {
      try folder.write(
        String(contentsOfFile: folder.path("Trips/Sources/Trips/\(source)"), encoding: .utf8),
        to: "Flat/\(source)")
    }
    try folder.write("import NoSuchModule", to: "Flat/Tests/Test.swift")
    let built = try await run("plugin", "build", "--debug", "Flat", "-o", "Flat.so")
    #expect(built.status == 0, Comment(rawValue: built.messages))
  }

  @Test("a test can migrate in a confined worker, and kill runs at any moment")
  func processes() async throws {
    let made = try await run("plugin", "new", "Trips")
    try #require(made.status == 0, Comment(rawValue: made.messages))
    try folder.write(
      """
      import Instar
      import InstarTesting
      import Testing

      @testable import Trips

      @Test func confined() throws {
        let test = MigrationTest(TripsPlan.self)
        let store = try test.store(copying: "Stores/1.0.0.store")
        try store.migrateConfined()
        #expect(try store.version() == TripsV2.versionIdentifier)
      }

      @Test func kills() throws {
        let test = MigrationTest(TripsPlan.self)
        try test.expectWholeAfterKills(
          of: test.randomStore(at: TripsV1.self, rows: 200, seed: 3), kills: 4, seed: 9)
      }
      """, to: "Trips/Tests/TripsTests/Processes.swift")
    let answer = try await run("plugin", "test", "Trips", "--filter", "confined|kills")
    #expect(answer.status == 0, "\(answer.messages)")
    #expect(answer.messages.contains("Test run with 2 tests"))
  }

  @Test("tests of XCTest run through SwiftPM, beside those of Swift Testing")
  func xcTest() async throws {
    let made = try await run("plugin", "new", "Trips")
    try #require(made.status == 0, Comment(rawValue: made.messages))
    try folder.write(
      """
      import Instar
      import InstarTesting
      import XCTest

      @testable import Trips

      final class OldTests: XCTestCase {
        func testRows() throws {
          let store = try MigrationTest(TripsPlan.self).randomStore(at: TripsV1.self, seed: 1)
          try store.migrate()
          try store.expectRowsKept()
        }
      }
      """, to: "Trips/Tests/TripsTests/OldTests.swift")
    let answer = try await run("plugin", "test", "Trips")
    #expect(answer.status == 0, "\(answer.output)\(answer.messages)")
    let text = answer.output + answer.messages
    #expect(text.contains("Executed 1 test, with 0 failures"))
    #expect(text.contains("Test run with 6 tests in 1 suite passed"))
  }

  @Test("a folder that exists, a name that Swift does not accept, and a missing store are refused")
  func refusals() async throws {
    try FileManager.default.createDirectory(
      atPath: folder.path("Trips"), withIntermediateDirectories: false)
    try folder.write("mine", to: "Trips/mine.txt")
    let exists = try await run("plugin", "new", "Trips", "--json")
    #expect(exists.status == 1)
    #expect(try exists.errors().first?.cause == "'\(folder.path("Trips"))' exists")
    #expect(try folder.text(of: "Trips/mine.txt") == "mine")

    for name in ["2fast", "my-plugin", "class", "Instar", "Testing"] {
      let answer = try await run("plugin", "new", name, "--json")
      #expect(answer.status == 2, "\(name)")
      #expect(try answer.errors().map(\.code) == [.wrongUsage], "\(name)")
    }
    let missing = try await run("plugin", "new", "Other", "--from", "none.store", "--json")
    #expect(missing.status == 5, Comment(rawValue: missing.messages))
    try folder.write("", to: "empty.store")
    let empty = try await run("plugin", "new", "Other", "--from", "empty.store", "--json")
    #expect(empty.status == 3, Comment(rawValue: empty.messages))
    #expect(Set(folder.names()).isSubset(of: ["Trips", "empty.store", "state"]))
  }

  @Test(
    "plugin check finds a released version that was edited, and a store that the plan cannot migrate"
  )
  func releasedVersions() async throws {
    let made = try await run("plugin", "new", "Trips")
    try #require(made.status == 0, Comment(rawValue: made.messages))
    let first = try folder.text(of: "Trips/Sources/Trips/TripsV1.swift")
    try folder.write(
      first.replacing("var title: String", with: "var title: String\n    var place: String?"),
      to: "Trips/Sources/Trips/TripsV1.swift")
    let built = try await run("plugin", "build", "Trips", "-o", "Trips.so")
    #expect(built.status == 0, Comment(rawValue: built.messages))
    let check = try await run(
      "plugin", "check", "Trips.so", "--schemas", "Trips/Schemas", "--store",
      "Trips/Stores/1.0.0.store")
    #expect(check.status == 3, Comment(rawValue: check.messages))
    #expect(
      check.output.contains("1.0.0 is not as it was released: it adds Item.place"),
      "\(check.output)")
    #expect(check.output.contains("1.0.0.store' cannot be migrated: "), "\(check.output)")
    let none = try await run("plugin", "check", "Trips.so", "--schemas", "Trips/Tests")
    #expect(none.status == 5)
    #expect(none.messages.contains("contains no .json file"))
  }

  @Test("plugin check finds released versions and plans that the plugin no longer has")
  func removedVersions() async throws {
    let made = try await run("plugin", "new", "Trips")
    try #require(made.status == 0, Comment(rawValue: made.messages))
    let built = try await run("plugin", "build", "--debug", "Trips", "-o", "Trips.so")
    try #require(built.status == 0, Comment(rawValue: built.messages))
    let first = try folder.text(of: "Trips/Schemas/TripsPlan-1.0.0.json")
    try folder.write(
      first.replacing("\"1.0.0\"", with: "\"0.9.0\""), to: "Trips/Schemas/TripsPlan-0.9.0.json")
    try folder.write(
      first.replacing("\"TripsPlan\"", with: "\"TripPlan\""),
      to: "Trips/Schemas/TripPlan-1.0.0.json"
    )
    let check = try await run("plugin", "check", "Trips.so", "--schemas", "Trips/Schemas", "--json")
    #expect(check.status == 3, Comment(rawValue: check.messages))
    struct Check: Decodable { var findings: [Finding] }
    let findings = try #require(try check.objects(Check.self).first).findings
    #expect(findings.map(\.severity) == [.error, .error])
    #expect(findings.map(\.code) == [.unknownVersion, .noPlan])
    #expect(
      findings.map(\.message) == [
        "TripsPlan: 0.9.0 was released, but the plan does not have it: its stores are not migrated",
        "TripPlan: the plan was released with 1.0.0, but the plugin does not have it: its stores are not migrated",
      ])
    #expect(findings.last?.fix?.contains("if the plan is called TripsPlan now") == true)
  }

  @Test("plugin check rehearses on a store, and finds a closure that fetches all rows at once")
  func wholeFetch() async throws {
    let made = try await run("plugin", "new", "Trips")
    try #require(made.status == 0, Comment(rawValue: made.messages))
    let store = "Trips/Stores/1.0.0.store"
    let bytes = try Data(contentsOf: folder.url.appendingPathComponent(store))
    func check() async throws -> String {
      let built = try await run("plugin", "build", "--debug", "Trips", "-o", "Trips.so")
      try #require(built.status == 0, Comment(rawValue: built.messages))
      let check = try await run("plugin", "check", "Trips.so", "--store", store)
      #expect(check.status == 0, Comment(rawValue: check.messages))
      return check.output
    }
    #expect(try await check().contains("no problem found"))

    let plan = try folder.text(of: "Trips/Sources/Trips/TripsPlan.swift")
    try folder.write(
      plan.replacing(
        "try context.enumerate(FetchDescriptor<TripsV2.Item>()) { item in",
        with: """
          var one = FetchDescriptor<TripsV2.Item>()
                one.fetchLimit = 2
                _ = try context.fetch(one)
                for item in try context.fetch(FetchDescriptor<TripsV2.Item>()) {
          """), to: "Trips/Sources/Trips/TripsPlan.swift")
    let found = try await check()
    #expect(
      found.contains("note: TripsPlan: didMigrate of 1.0.0 → 2.0.0 fetches 4 rows of Item at"),
      "\(found)")
    #expect(found.contains("which has 5000 rows in memory at a time"))
    #expect(try Data(contentsOf: folder.url.appendingPathComponent(store)) == bytes)
  }

  @Test("versions are read from stores of both formats, and each real store is at its version")
  func fromStores() async throws {
    let samples = CommandLineTool.repository.appendingPathComponent("Plugins/notes/stores")
    let first = folder.path("one.store")
    let second = folder.path("two.store")
    for store in [first, second] {
      try FileManager.default.copyItem(
        atPath: samples.appendingPathComponent("notes-1.store").path, toPath: store)
    }
    let notes = try await BuiltPlugins.notes.value
    let migrated = try await run("migrate", "--plugin", notes, second)
    try #require(migrated.status == 0, Comment(rawValue: migrated.messages))

    let made = try await run(
      "plugin", "new", "Memos", "--from", second, "--from", first, "--json")
    try #require(made.status == 0, Comment(rawValue: made.messages))
    let plugin = try #require(try made.objects(NewPlugin.self).first)
    #expect(plugin.versions == ["1.0.0", "2.0.0", "3.0.0"])
    #expect(Set(plugin.notes).count == plugin.notes.count, "\(plugin.notes)")
    let tests = try await run("plugin", "test", "Memos")
    #expect(tests.status == 0, "\(tests.output)\(tests.messages)")
    let built = try await run("plugin", "build", "Memos", "-o", "Memos.so")
    #expect(built.status == 0, Comment(rawValue: built.messages))
    for store in [first, second, plugin.sampleStore] {
      let answer = try await run("migrate", "--plugin", "Memos.so", store)
      #expect(answer.status == 0, "\(store): \(answer.messages)")
      #expect(answer.output.contains("→ 3.0.0"), "\(store): \(answer.output)")
    }
  }

  @Test("versions are read from ordinary tables", arguments: ["alembic", "room"])
  func fromTables(name: String) async throws {
    let tables = try TableStore(name)
    let store = tables.path
    let made = try await run("plugin", "new", "Shop", "--from", store, "--json")
    try #require(made.status == 0, Comment(rawValue: made.messages))
    let plugin = try #require(try made.objects(NewPlugin.self).first)
    let tests = try await run("plugin", "test", "Shop")
    #expect(tests.status == 0, "\(tests.output)\(tests.messages)")
    let built = try await run("plugin", "build", "Shop", "-o", "Shop.so")
    #expect(built.status == 0, Comment(rawValue: built.messages))
    let version = try #require(plugin.versions.first)
    let answer = try await run("migrate", "--plugin", "Shop.so", "--adopt", version, store)
    #expect(answer.status == 0, Comment(rawValue: answer.messages))
  }
}
