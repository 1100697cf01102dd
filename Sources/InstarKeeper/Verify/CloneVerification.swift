internal import Foundation
package import GRDB
package import InstarSchema
package import InstarStore
internal import InstarWire

/// Checks whether a clone may replace the store's content. It reads the file, and believes nothing that the worker
/// said.
package struct CloneVerification {
  let path: MigrationPath
  let layout: StoreLayout
  /// What the store has besides its version, and must keep.
  let additions: StoreStructure
  let before: StoreBaseline

  package init(
    path: MigrationPath, layout: StoreLayout, additions: StoreStructure, before: StoreBaseline
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

  /// The layout with the clone's names of join tables: structures that differ only in these are equal.
  private func layoutOfClone(_ db: Database) throws -> StoreLayout {
    guard case .coreData(let expected) = layout else { return layout }
    let own = try CoreDataConventions(of: db, metadata: nil)
    var conventions = expected.conventions
    conventions.joinTables = own.joinTables
    conventions.reflexiveColumns = own.reflexiveColumns
    return .coreData(try CoreDataLayout(schema: path.last, conventions: conventions))
  }

  /// Checks the contents of the clone.
  ///
  /// - Throws: `verificationFailed`, `unexpectedStructure`, `missingRequiredValues`,
  ///   `brokenReferences` or `rowsLost`.
  package func verify(_ db: Database) throws -> Result {
    try Self.quickCheck(db, of: "the clone")
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
    let structure = try described(whole, asIn: expected)
    guard structure == expected else {
      throw InstarError(
        .unexpectedStructure, Self.what,
        cause: "its structure does not match version \(path.to):\n"
          + structure.differences(from: expected).prefix(20).joined(separator: "\n"),
        next: "remove statements that change tables, columns or indexes from the plan's closures")
    }
    switch layout {
    case .coreData(let layout):
      try requireEntityList(db, layout)
      try requireValues(db, layout)
    case .plain(let layout):
      try requireUndescribed(whole)
      try requireValues(db, layout)
    }
    let after = try StoreCensus(db, layout: layoutOfClone(db))
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

  /// - Throws: `corruptStore` with SQLite's first findings.
  static func quickCheck(_ db: Database, of subject: String) throws {
    let findings = try String.fetchAll(db, sql: "PRAGMA quick_check(5)")
    guard findings == ["ok"] else {
      throw InstarError(
        .corruptStore, "cannot verify \(subject)",
        cause: "SQLite's quick_check reports damage:\n" + findings.joined(separator: "\n"))
    }
  }

  static let what = "cannot verify the migrated clone"

  static func failed(_ cause: String) -> InstarError {
    InstarError(.verificationFailed, what, cause: cause)
  }
}

// MARK: - The parts

extension CloneVerification {
  /// `Z_PRIMARYKEY` must list the entities by the numbers that rows carry.
  private func requireEntityList(_ db: Database, _ layout: CoreDataLayout) throws {
    let rows = try Row.fetchAll(
      db,
      sql: """
        SELECT Z_ENT, Z_NAME, Z_SUPER FROM Z_PRIMARYKEY
        WHERE Z_ENT < 16000 ORDER BY Z_ENT LIMIT 16000
        """)
    let listed = rows.map {
      CoreDataProbe.ListedEntity(
        number: $0.get(0) ?? 0, name: $0.get(1) ?? "", superNumber: $0.get(2) ?? 0)
    }
    let expected = layout.entities.map {
      CoreDataProbe.ListedEntity(number: $0.number, name: $0.name, superNumber: $0.superNumber)
    }
    guard listed == expected else {
      throw Self.failed("Z_PRIMARYKEY does not list the entities of version \(path.to)")
    }
  }

  private func requireValues(_ db: Database, _ layout: CoreDataLayout) throws {
    for entity in layout.entities {
      let required = entity.attributes.filter { !$0.attribute.isOptional }
      guard !required.isEmpty else { continue }
      let sums = required.map { "coalesce(sum(\($0.column) IS NULL), 0)" }.joined(separator: ", ")
      let numbers = entity.numbers.map(String.init).joined(separator: ", ")
      let row = try Row.fetchOne(
        db, sql: "SELECT \(sums) FROM \(entity.table) WHERE Z_ENT IN (\(numbers))")
      for (index, attribute) in required.enumerated() {
        guard let count: Int = row?.get(index), count > 0 else { continue }
        throw InstarError(
          .missingRequiredValues, Self.what,
          cause:
            "\(count) rows of \(entity.name) have no value for required attribute '\(attribute.attribute.name)'",
          next: "give '\(attribute.attribute.name)' a default, or fill it in willMigrate")
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
