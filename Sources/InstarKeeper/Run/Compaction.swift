internal import Foundation
internal import GRDB
internal import InstarSchema
internal import InstarStore

/// Removes the free pages of a clone, if they are more than a quarter of it.
///
/// Stages that rebuild a table or remove rows leave pages free, and SQLite keeps them in the file. The clone is
/// private, and removed if the compaction fails, so nothing needs a sync.
struct Compaction {
  /// The path of the clone.
  let clone: String
  /// The tables whose rowids may change.
  let ownTables: Set<String>
  /// The free pages, and all pages, as the clone's header says.
  private let free: Int
  private let all: Int

  /// - Returns: `nil` where at most a quarter of the pages is free.
  init?(_ clone: String, _ layout: any StoreLayout) throws {
    guard let pages = try Self.pages(of: clone), Self.isWorthwhile(pages) else { return nil }
    self.clone = clone
    (all, free) = pages
    let format = layout.format
    ownTables =
      format.knowsRowsByColumns
      ? Set(layout.structure.tables.map(\.name) + format.bookkeepingTables) : []
  }

  /// Whether a store has so many free pages that its clone is to be compacted.
  static func isWorthwhile(_ pages: (all: Int, free: Int)) -> Bool { pages.free * 4 > pages.all }

  /// Reads the header of a file: the number of pages at byte 28, that of free pages at byte 36 (SQLite file format,
  /// section 1.3). A worker may have left anything there.
  ///
  /// - Returns: `nil` where the clone has no complete header.
  private static func pages(of clone: String) throws -> (all: Int, free: Int)? {
    let descriptor = open(clone, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { throw RunFiles.failure("cannot read '\(clone)'", errno) }
    defer { close(descriptor) }
    var header = [UInt32](repeating: 0, count: 3)
    guard pread(descriptor, &header, 12, 28) == 12 else { return nil }
    return (Int(UInt32(bigEndian: header[0])), Int(UInt32(bigEndian: header[2])))
  }

  /// Compacts the clone.
  ///
  /// With auto-vacuum, pages from the end move to the free places. Without, all tables are written to a new file, which
  /// takes the clone's place. Either leaves each row under its rowid.
  ///
  /// - Parameter requireSchema: Throws where the schema is not the one that the stages leave. `VACUUM` runs the
  ///   `CREATE` statements of a schema, and those of a hostile plugin could run code in this process.
  /// - Returns: A sentence for the report.
  /// - Throws: `verificationFailed` where the clone is damaged, another error of the database, or that of
  ///   `requireSchema`. The clone is then of no use.
  func perform(requireSchema: (Database) throws -> Void) throws -> String {
    try FileCopy.useRollbackJournal(clone)
    do {
      let isCompacted = try Clone.file(clone).change {
        try requireSchema($0)
        return try compact($0)
      }
      guard isCompacted else {
        return
          "\(free) of \(all) pages are free; Instar did not compact the store, because that could change the "
          + "rowids of a virtual table or a table without INTEGER PRIMARY KEY"
      }
      let left = try Self.pages(of: clone)?.free ?? free
      return "\(free) of \(all) pages were free after the stages, and "
        + "\(left > 0 ? "all but \(left) " : "")were given back to the file system"
    } catch let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT {
      throw CloneVerification.failed(
        "SQLite cannot remove its free pages: \(error.message ?? "the clone is damaged")")
    }
  }

  /// - Returns: `false` where that is not possible.
  private func compact(_ db: Database) throws -> Bool {
    try db.execute(sql: "PRAGMA synchronous = OFF")
    if try Int.fetchOne(db, sql: "PRAGMA auto_vacuum") != 0 {
      try db.execute(sql: "PRAGMA incremental_vacuum")
      return true
    }
    guard try tablesWithHiddenRowIDs(db).isSubset(of: ownTables) else { return false }
    let compacted = clone + StorePaths.compactedSuffix
    try RunFiles.makeFile(compacted)
    try db.execute(sql: "VACUUM INTO ?", arguments: [compacted])
    guard rename(compacted, clone) == 0 else {
      throw RunFiles.failure("cannot replace '\(clone)'", errno)
    }
    return true
  }

  /// The tables in which `VACUUM` may give a row another rowid, because the rowid is not the value of a column.
  ///
  /// The primary key of a table with rowids that is not the rowid has an index of its own. Nothing depends on the
  /// rowids of SQLite's own tables.
  private func tablesWithHiddenRowIDs(_ db: Database) throws -> Set<String> {
    try String.fetchSet(
      db,
      sql: """
        SELECT name FROM pragma_table_list AS l
        WHERE l.schema = 'main' AND l.name NOT GLOB 'sqlite_*' AND (
          l.type IN ('virtual', 'shadow')
          OR l.type = 'table' AND NOT l.wr AND (
            NOT EXISTS (SELECT 1 FROM pragma_table_xinfo(l.name) WHERE pk > 0)
            OR EXISTS (SELECT 1 FROM pragma_index_list(l.name) WHERE origin = 'pk')))
        """)
  }
}
