import Foundation
import GRDB
import Instar
import InstarStore
import InstarTestSupport

/// The models of `Tests/Fixtures/Plugins/Boxes.swift` at 1.0.0, to make stores with. Built into the tests: they and the
/// plugin meet only in files.
enum BoxSchemaV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Box.self] }

  @Model
  final class Box {
    var name: String
    var size: Int

    init(name: String, size: Int) {
      self.name = name
      self.size = size
    }
  }
}

/// A store of boxes, at 1.0.0 or, after a run, at 2.0.0.
struct BoxStore {
  let path: String

  /// - Parameter name: what the first box is named after, and so what the plan does to its worker.
  init(_ name: String, boxes: Int = 50, in folder: TemporaryFolder, journalMode: String = "wal")
    throws
  {
    path = folder.path("\(name).store")
    let container = try ModelContainer(
      for: Schema(versionedSchema: BoxSchemaV1.self),
      configurations: ModelConfiguration(url: URL(filePath: path)))
    let context = ModelContext(container)
    for size in 0..<boxes { context.insert(BoxSchemaV1.Box(name: name, size: size)) }
    try context.save()
    try container.close()
    if journalMode != "wal" {
      let queue = try DatabaseQueue(path: path)
      try queue.inDatabase { try $0.execute(sql: "PRAGMA journal_mode = \(journalMode)") }
      try queue.close()
    }
  }

  init(path: String) { self.path = path }

  /// The declared version, after an integrity check.
  func version() throws -> Schema.Version? {
    try read { db in
      let verdict = try String.fetchOne(db, sql: "PRAGMA integrity_check") ?? ""
      guard verdict == "ok" else { throw Damage(verdict: verdict) }
      return try CoreDataMetadata.read(db).version
    }
  }

  func sizes() throws -> [Int] {
    try read { try Int.fetchAll($0, sql: "SELECT ZSIZE FROM ZBOX ORDER BY ZSIZE") }
  }

  /// The labels that the plan's `didMigrate` writes; only a store at 2.0.0 has the column.
  func labels() throws -> Int {
    try read { try Int.fetchOne($0, sql: "SELECT COUNT(ZLABEL) FROM ZBOX") ?? 0 }
  }

  func read<Value>(_ body: (Database) throws -> Value) throws -> Value {
    var configuration = Configuration()
    configuration.busyMode = .timeout(10)
    let queue = try DatabaseQueue(path: path, configuration: configuration)
    let value = try queue.inDatabase(body)
    try queue.close()
    return value
  }

  struct Damage: Error {
    let verdict: String
  }
}

/// Changes one bit in the middle of a file.
func flipByte(in file: String) throws {
  var bytes = try Data(contentsOf: URL(filePath: file))
  bytes[bytes.count / 2] ^= 1
  try bytes.write(to: URL(filePath: file))
}

/// The plugins of `Tests/Fixtures/Plugins`, built once each.
enum FixturePlugins {
  static let boxes = Task { try await build("Boxes") }
  static let freezeRay = Task { try await build("FreezeRay") }
  static let cars = Task { try await build("Cars") }
  static let moody = Task { try await build("Moody") }
  static let photos = Task { try await build("Photos") }
  static let kitchens = Task { try await build("Kitchens") }
  static let tables = Task { try await build("Tables") }

  private static func build(_ name: String) async throws -> String {
    let source = CommandLineTool.repository
      .appendingPathComponent("Tests/Fixtures/Plugins/\(name).swift").path
    return try await SharedPlugin.build(name, from: [source])
  }
}
