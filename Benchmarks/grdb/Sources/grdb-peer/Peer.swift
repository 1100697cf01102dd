import Foundation
import GRDB

/// `grdb-peer OPERATION PATH [COUNT]`: the work of one benchmark, as an app would write it with GRDB.
///
/// Prints one JSON line with the seconds that the work took, without the start of the process.
@main
enum Peer {
  static let usage = """
    usage: grdb-peer OPERATION PATH [COUNT]

      add, rename, drop   change a column of the table note with a DatabaseMigrator
      rows                add a column, fill it row by row, drop the old one: two migrations
      codable             the same in one transaction, with Codable records
      fleet               add a column to each store below the folder PATH, with a DatabaseMigrator
      insert              create a store and insert COUNT Codable records in one transaction
      fetch               fetch all Codable records of a store that 'insert' created


    """

  static func main() throws {
    let arguments = CommandLine.arguments.dropFirst()
    guard let operation = arguments.first, let path = arguments.dropFirst().first else {
      stop(usage)
    }
    let count = arguments.dropFirst(2).first.flatMap { Int($0) } ?? 0
    let clock = ContinuousClock()
    let start = clock.now
    var rows = 0
    switch operation {
    case "add": try migrate(path, [.addColumn])
    case "rename": try migrate(path, [.renameColumn])
    case "drop": try migrate(path, [.dropColumn])
    case "rows": try migrate(path, [.fillColumn, .dropContent])
    case "codable": rows = try rewriteRecords(path)
    case "fleet": rows = try migrateFleet(path)
    case "insert": rows = try insertRecords(path, count: count)
    case "fetch": rows = try fetchRecords(path)
    default: stop(usage)
    }
    let seconds = (clock.now - start) / .seconds(1)
    print(#"{"operation":"\#(operation)","s":\#(seconds),"rows":\#(rows)}"#)
  }

  static func stop(_ text: String) -> Never {
    FileHandle.standardError.write(Data(text.utf8))
    exit(2)
  }
}

// MARK: - Migrations

/// A migration of the benchmarks' stores.
enum Migration: String {
  case addColumn, renameColumn, dropColumn, fillColumn, dropContent

  func run(_ database: Database) throws {
    switch self {
    case .addColumn:
      try database.alter(table: "note") { $0.add(column: "pinned", .integer) }
    case .renameColumn:
      try database.alter(table: "note") { $0.rename(column: "title", to: "heading") }
    case .dropColumn:
      try database.alter(table: "note") { $0.drop(column: "created") }
    case .fillColumn:
      try database.alter(table: "note") { $0.add(column: "content2", .text) }
      let update = try database.cachedStatement(sql: "UPDATE note SET content2 = ? WHERE id = ?")
      let rows = try Row.fetchCursor(database, sql: "SELECT id, content FROM note")
      while let row = try rows.next() {
        let (id, content): (Int64, String) = (row["id"], row["content"])
        try update.execute(arguments: [reversedWords(content), id])
      }
    case .dropContent:
      try database.alter(table: "note") { $0.drop(column: "content") }
    }
  }
}

/// Runs migrations with their default settings: each in its own transaction, with a check of all foreign keys.
func migrate(_ path: String, _ migrations: [Migration]) throws {
  var migrator = DatabaseMigrator()
  for migration in migrations {
    migrator.registerMigration(migration.rawValue, migrate: migration.run)
  }
  let queue = try DatabaseQueue(path: path)
  try migrator.migrate(queue)
  try queue.close()
}

/// Migrates every store below a folder, one after the other in this process.
func migrateFleet(_ folder: String) throws -> Int {
  let files = FileManager.default.enumerator(atPath: folder)
  var stores: [String] = []
  while let name = files?.nextObject() as? String {
    if name.hasSuffix(".db") { stores.append("\(folder)/\(name)") }
  }
  for store in stores.sorted() { try migrate(store, [.addColumn]) }
  return stores.count
}

// MARK: - Records

struct Note: Codable, FetchableRecord, PersistableRecord {
  static let databaseTableName = "note"
  var id: Int64
  var uid: String
  var title: String
  var content: String
  var created: Double
  var folder_id: Int64?
}

struct NoteWithBoth: Codable, FetchableRecord, PersistableRecord {
  static let databaseTableName = "note"
  var id: Int64
  var uid: String
  var title: String
  var content: String
  var created: Double
  var folder_id: Int64?
  var content2: String?
}

/// Adds a column, sets it in every record, and drops the old column.
func rewriteRecords(_ path: String) throws -> Int {
  let queue = try DatabaseQueue(path: path)
  let count = try queue.write { database in
    try database.alter(table: "note") { $0.add(column: "content2", .text) }
    let records = try NoteWithBoth.fetchCursor(database)
    var count = 0
    while var record = try records.next() {
      record.content2 = reversedWords(record.content)
      try record.update(database)
      count += 1
    }
    try database.alter(table: "note") { $0.drop(column: "content") }
    return count
  }
  try queue.close()
  return count
}

func insertRecords(_ path: String, count: Int) throws -> Int {
  let queue = try DatabaseQueue(path: path)
  try queue.write { database in
    try database.create(table: "note") { table in
      table.column("id", .integer).primaryKey()
      table.column("uid", .text).notNull().unique()
      table.column("title", .text).notNull()
      table.column("content", .text).notNull()
      table.column("created", .double).notNull()
      table.column("folder_id", .integer).indexed()
    }
    for number in 0..<count {
      try Note(
        id: Int64(number + 1), uid: "note-\(number)", title: "Note \(number)",
        content: "The content of note \(number).", created: Double(number), folder_id: nil
      ).insert(database)
    }
  }
  try queue.close()
  return count
}

func fetchRecords(_ path: String) throws -> Int {
  let queue = try DatabaseQueue(path: path)
  let bytes = try queue.read { database in
    try Note.fetchAll(database).reduce(0) {
      $0 + $1.uid.utf8.count + $1.title.utf8.count + Int($1.created)
    }
  }
  try queue.close()
  return bytes
}

// MARK: - Text

/// "a b c" becomes "c b a". Works on bytes, so that the benchmark measures the database and not the text.
func reversedWords(_ text: String) -> String {
  var text = text
  return text.withUTF8 { bytes in
    String(unsafeUninitializedCapacity: bytes.count) { target in
      var (written, end) = (0, bytes.count)
      while end >= 0 {
        let space = bytes[..<end].lastIndex(of: 0x20) ?? -1
        for index in (space + 1)..<end {
          target[written] = bytes[index]
          written += 1
        }
        if space >= 0 {
          target[written] = 0x20
          written += 1
        }
        end = space
      }
      return written
    }
  }
}
