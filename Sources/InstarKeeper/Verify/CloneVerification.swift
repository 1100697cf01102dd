internal import Foundation
package import GRDB
package import InstarSchema
package import InstarStore
internal import InstarWire

/// Checks whether a clone may replace the store's content. It reads the file, and believes nothing that the worker
/// said.
package struct CloneVerification {
  let path: MigrationPath
  let layout: any StoreLayout
  /// What the store has besides its version, and must keep.
  let additions: StoreStructure
  let before: StoreBaseline

  package init(
    path: MigrationPath, layout: any StoreLayout, additions: StoreStructure, before: StoreBaseline
  ) {
    self.path = path
    self.layout = layout
    self.additions = additions
    self.before = before
  }

  /// What the checks found, for the report.
  package struct Result {
    var census: StoreCensus
    package var structure: StoreStructure
    var notes: [String]
    /// The files that rows reference.
    var externalFiles: Set<String> = []
  }

  /// Checks that the clone is a regular file with one name, and complete.
  ///
  /// - Throws: `verificationFailed`.
  static func requirePlainFile(_ name: String, in folder: String) throws {
    let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else { throw failed("the folder of the clone is gone") }
    defer { close(descriptor) }
    let clone = openat(descriptor, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard clone >= 0 else { throw failed("the clone is gone, or was replaced by a link") }
    defer { close(clone) }
    var status = stat()
    guard fstat(clone, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_nlink == 1
    else {
      throw failed("the clone is no longer a regular file with one name")
    }
    for suffix in ["-wal", "-journal"] {
      var side = stat()
      guard lstat("\(folder)/\(name)\(suffix)", &side) != 0 || side.st_size == 0 else {
        throw failed("a stage left a transaction open (\(name)\(suffix))")
      }
      unlink("\(folder)/\(name)\(suffix)")
    }
  }

  /// Checks the contents of the clone.
  ///
  /// - Throws: `verificationFailed`, `unexpectedStructure`, `missingRequiredValues`,
  ///   `brokenReferences` or `rowsLost`.
  package func verify(_ db: Database) throws -> Result {
    try StoreCheck.requireSound(db, "the clone")
    guard try Int.fetchOne(db, sql: "PRAGMA page_size") == before.pageSize,
      try Int.fetchOne(db, sql: "PRAGMA auto_vacuum") == before.autoVacuum
    else {
      throw Self.failed("the page size or the auto-vacuum mode of the clone was changed")
    }
    let code = try SchemaCode(db)
    if let name = code.addition(
      to: before.code, allowing: Set(layout.triggerStatements),
      renames: try renames())
    {
      throw Self.failed(
        "the trigger, view or virtual table '\(name)' is new or changed, and no version describes it"
      )
    }
    for entity in path.last.entities {
      for attribute in entity.attributes where attribute.derivation != nil {
        guard !code.hasObject(namedLike: "_\(entity.name)_\(attribute.name)_") else { continue }
        guard before.code.hasTriggers else { continue }
        throw Self.failed("derived attribute \(entity.name).\(attribute.name) has no trigger")
      }
    }
    let whole = try StoreStructure.read(db, format: layout.format)
    if path.isLightweight,
      let name = code.loss(since: before.code, tables: Set(whole.tables.map(\.name)))
    {
      throw Self.failed(
        "the app's trigger, view or virtual table '\(name)' is gone, although no stage runs code")
    }
    let expected = layout.structure.adding(additions)
    let structure = try whole.described(
      asIn: expected, among: structures() + [expected], format: layout.format)
    guard structure == expected else {
      throw InstarError(
        .unexpectedStructure, Self.what,
        cause: "its structure does not match version \(path.to):\n"
          + structure.differences(from: expected).prefix(20).joined(separator: "\n"),
        next: "remove statements that change tables, columns or indexes from the plan's closures")
    }
    guard try layout.matchesEntityList(of: db) else {
      throw Self.failed("Z_PRIMARYKEY does not list the entities of version \(path.to)")
    }
    try requireUndescribed(whole)
    try requireValues(db)
    // The clone may name join tables differently: structures that differ only in these names are equal.
    let after = try StoreCensus(db, layout: path.last.layout(in: db))
    // Stray rows that the store had before may stay: no app finds them.
    let strays = before.census.strayRows.values.reduce(0, +)
    if let (table, count) = after.strayRows.min(by: { $0.key < $1.key }),
      after.strayRows.values.reduce(0, +) > strays
    {
      throw Self.failed("\(count) rows of \(table) belong to no entity of version \(path.to)")
    }
    try requireLinks(after)
    try requireOthers(after)
    return Result(census: after, structure: whole, notes: try compareCounts(after))
  }

  static let what = "cannot verify the migrated clone"

  static func failed(_ cause: String) -> InstarError {
    InstarError(.verificationFailed, what, cause: cause)
  }
}

// MARK: - The parts

extension CloneVerification {
  private func requireValues(_ db: Database) throws {
    for required in layout.requiredColumns {
      let sums = required.columns.map { "coalesce(sum(\($0.column) IS NULL), 0)" }
      let condition = required.rowCondition.map { " WHERE \($0)" } ?? ""
      let row = try Row.fetchOne(
        db, sql: "SELECT \(sums.joined(separator: ", ")) FROM \(required.table)\(condition)")
      for (index, column) in required.columns.enumerated() {
        guard let count: Int = row?.get(index), count > 0 else { continue }
        throw InstarError(
          .missingRequiredValues, Self.what,
          cause: "\(count) rows of \(required.owner) have no value for required '\(column.name)'",
          next: "give '\(column.name)' a default, or set it in willMigrate")
      }
    }
  }

  /// Returns the links that a relationship had before; `nil` where the relationship is new.
  private func linksBefore(_ relationship: Schema.Relationship, of entity: String)
    -> StoreCensus.Links?
  {
    path.origin(of: relationship, in: entity).flatMap { before.census.links[$0] }
  }

  private func requireLinks(_ after: StoreCensus) throws {
    for entity in path.last.entities {
      for relationship in entity.relationships {
        let name = "\(entity.name).\(relationship.name)"
        guard let now = after.links[name] else { continue }
        let earlier = linksBefore(relationship, of: entity.name)
        guard now.broken <= earlier?.broken ?? 0 else {
          throw InstarError(
            .brokenReferences, Self.what,
            cause: "\(now.broken) links of \(name) reference missing rows"
              + (earlier.map { "; before the run \($0.broken) did" } ?? ""),
            next: "set these relationships to existing models, or to nil, in didMigrate")
        }
      }
    }
  }

  /// Without code, stages keep every row and link. Code may remove some, which the report notes.
  private func compareCounts(_ after: StoreCensus) throws -> [String] {
    var notes = after.strayRows.sorted { $0.key < $1.key }.map { table, count in
      "\(count) rows of \(table) belong to no entity, as before the run; they are unchanged"
    }
    for entity in path.last.entities {
      if let earlier = path.origin(of: entity.name).flatMap({ before.census.rows[$0] }),
        let now = after.rows[entity.name], earlier != now
      {
        if path.isLightweight {
          throw InstarError(
            .rowsLost, Self.what,
            cause: "\(entity.name) had \(earlier) rows and has \(now), although no stage runs code")
        }
        if now < earlier { notes.append("\(entity.name) had \(earlier) rows and has \(now)") }
      }
      for relationship in entity.relationships {
        let name = "\(entity.name).\(relationship.name)"
        guard let earlier = linksBefore(relationship, of: entity.name),
          let now = after.links[name], now.count < earlier.count
        else { continue }
        if path.isLightweight {
          throw InstarError(
            .rowsLost, Self.what,
            cause:
              "\(name) had \(earlier.count) links and has \(now.count), although no stage runs code"
          )
        }
        notes.append("\(name) had \(earlier.count) links and has \(now.count)")
      }
    }
    return notes
  }
}
