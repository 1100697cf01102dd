import Foundation
import GRDB
import InstarTestSupport
import InstarWire
import Testing

/// A store of `Tests/Fixtures/Tables`, made from its SQL in a folder of its own.
struct TableStore {
  let folder: TemporaryFolder
  let path: String

  init(_ name: String) throws {
    folder = try TemporaryFolder()
    path = folder.path("\(name).db")
    let sql = try String(
      contentsOf: CommandLineTool.repository
        .appendingPathComponent("Tests/Fixtures/Tables/\(name).sql"), encoding: .utf8)
    let queue = try DatabaseQueue(path: path)
    try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
    try queue.close()
  }

  func open<Value>(_ body: (Database) throws -> Value) throws -> Value {
    let queue = try DatabaseQueue(path: path)
    let value = try queue.inDatabase(body)
    try queue.close()
    return value
  }

  func strings(_ sql: String) throws -> [String] {
    try open { try String.fetchAll($0, sql: sql) }
  }

  /// Each object's text by its name.
  func objects() throws -> [String: String] {
    try open { db in
      let rows = try Row.fetchAll(
        db, sql: "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
      return Dictionary(
        rows.map { ($0["name"], $0["sql"]) }, uniquingKeysWith: { first, _ in first })
    }
  }

  func probe() async throws -> ProbeReport {
    let before = try Data(contentsOf: URL(filePath: path))
    let plugin = try await FixturePlugins.tables.value
    let answer = try await CommandLineTool.run("probe", path, "--plugin", plugin, "--json")
    #expect(try Data(contentsOf: URL(filePath: path)) == before)
    return try #require(try answer.objects(ProbeReport.self).first)
  }

  @discardableResult
  func migrate() async throws -> RunReport {
    let plugin = try await FixturePlugins.tables.value
    let answer = try await CommandLineTool.run(
      "migrate", path, "--plugin", plugin, "--state-dir", folder.path("state"), "--json")
    #expect(answer.status == 0, Comment(rawValue: answer.messages + answer.output))
    #expect(try strings("PRAGMA integrity_check") == ["ok"])
    #expect(try strings("PRAGMA foreign_key_check") == [])
    return try #require(try answer.objects(RunReport.self).first)
  }
}
