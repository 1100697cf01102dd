import Foundation
import GRDB
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

/// Those of stores in Apple's layout are compared where every such store is migrated: `RealStoreChangeTests`.
@Suite("The statements that a plan shows")
struct PlannedStatementsTests {
  @Test(
    "a plan of a store of another tool shows the statements that a run executes",
    arguments: ["alembic", "django", "golang", "grdb", "room"])
  func plainStores(_ name: String) async throws {
    let store = try TableStore(name)
    let plugin = try await FixturePlugins.tables.value
    let plan = try await CommandLineTool.run("plan", store.path, "--plugin", plugin, "--json")
    let report = try #require(try plan.objects(PlanReport.self).first)
    let migration = try #require(report.migration, Comment(rawValue: plan.output + plan.messages))
    #expect(migration.notes == [])
    let run = try await CommandLineTool.run(
      "migrate", store.path, "--plugin", plugin, "--state-dir", store.folder.path("state"),
      "-com.apple.CoreData.SQLDebug", "1")
    try #require(run.status == 0, Comment(rawValue: run.messages))
    let planned = CommandLineTool.Answer.changes(migration.stages.flatMap(\.statements))
    if migration.stages.allSatisfy({ $0.kind == .lightweight }) {
      #expect(run.executedStatements == planned)
    } else {
      // The plan's own code changes rows as well.
      func ofSchema(_ statements: [String]) -> [String] {
        statements.filter { !["INSERT", "UPDATE", "DELETE"].contains($0.prefix(6)) }
      }
      #expect(ofSchema(run.executedStatements) == ofSchema(planned))
    }
  }

  @Test(
    "a plan says that its statements are general where the store's own tables need functions of the app"
  )
  func tablesOfApp() async throws {
    let store = try TableStore("grdb")
    let queue = try DatabaseQueue(path: store.path)
    try await queue.write { db in
      db.add(function: DatabaseFunction("app_accepts", argumentCount: 1) { _ in true })
      try db.execute(sql: "CREATE TABLE preference (name TEXT CHECK (app_accepts(name)))")
    }
    try queue.close()
    let plugin = try await FixturePlugins.tables.value
    let arguments = ["plan", store.path, "--plugin", plugin]
    let plan = try await CommandLineTool.run(arguments + ["--json"])
    let migration = try #require(
      try plan.objects(PlanReport.self).first?.migration,
      Comment(rawValue: plan.output + plan.messages))
    #expect(migration.notes.count == 1)
    #expect(migration.notes.first?.contains("app_accepts") == true)
    #expect(migration.stages.allSatisfy { !$0.statements.isEmpty })
    let text = try await CommandLineTool.run(arguments)
    #expect(text.output.contains("note: the statements are those for a store that Instar created"))
  }
}
