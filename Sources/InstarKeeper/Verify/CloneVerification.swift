internal import Foundation
package import GRDB
internal import InstarChange
package import InstarSchema
package import InstarStore
package import InstarWire

/// Checks whether a clone may replace the store's content. It reads the clone itself, and uses nothing that the worker
/// said.
package struct CloneVerification {
  let path: MigrationPath
  let layout: any StoreLayout
  private let before: SchemaBaseline
  /// What the stages leave in the clone.
  let expected: ExpectedSchema
  /// Which links and foreign keys are checked.
  let references: ReferenceCheck
  /// Whether the stages leave all rows as they are, except those of the history.
  let leavesRows: Bool
  /// Whether the stages write nothing but the schema and what the format keeps in rows, such as a history.
  let onlyUpdatesBooks: Bool
  private let policy: VerificationPolicy

  /// Computes the schema that the clone must have after the stages.
  ///
  /// - Parameters:
  ///   - ranPlugin: Whether code of the plugin was in the process that ran the stages.
  ///   - policy: How much is read.
  /// - Throws: The error that would end the run where the store's structure is the cause.
  package init(
    path: MigrationPath, layout: any StoreLayout, before: SchemaBaseline, ranPlugin: Bool = true,
    policy: VerificationPolicy = .standard
  ) throws(InstarError) {
    self.path = path
    self.layout = layout
    self.before = before
    expected = try path.expectedSchema(after: before.schema, rows: before.bookkeeping)
    references =
      policy == .full ? .all : ranPlugin || expected.rows == .writes ? .changed : .none
    leavesRows = !ranPlugin && expected.rows <= .updatesHistory
    onlyUpdatesBooks = !ranPlugin && [.updatesHistory, .updatesBooks].contains(expected.rows)
    self.policy = policy
  }

  /// Which links and foreign keys are checked.
  enum ReferenceCheck {
    /// None: the stages wrote no value of the app.
    case none
    /// Links and foreign keys whose columns have other values than in the store: code of the plan ran, or rows were
    /// written.
    case changed
    case all
  }

  /// What the checks found, for the report.
  package struct Result {
    var census: StoreCensus
    package var structure: StoreStructure
    var notes: [String]
    /// The files that rows reference.
    var externalFiles: Set<String> = []
    /// Whether each value of the app is in the clone as it is in the store.
    var keepsRowsOfStore = false
    /// The change that makes this clone of the store; `nil` where rows were written, or where that is not known.
    var change: StoreChange?
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
    guard fstat(clone, &status) == 0, status.isRegular, status.st_nlink == 1
    else {
      throw failed("the clone is no longer a regular file with one name")
    }
    for file in [SideFile.log, .journal].map({ $0.path(of: name) }) {
      guard stat(of: "\(folder)/\(file)")?.st_size ?? 0 == 0 else {
        throw failed("a stage left a transaction open (\(file))")
      }
      unlink("\(folder)/\(file)")
    }
  }

  /// The checks that read all rows of a clone. None of them needs the result of another.
  package struct Reading {
    /// The columns to sum while their tables are read.
    let columns: Set<ColumnList>
    /// Throws where SQLite's `integrity_check` finds damage, if the policy asks for it. Runs before `count`: queries of
    /// the plan fail on a damaged clone. May be called by another thread.
    let checkIntegrity: @Sendable (Database) throws -> Void
    /// Throws where values are missing, or not of their type.
    let checkValues: (Database) throws -> Void
    /// Returns the census with these sums. May be called by another thread, with a connection of its own.
    let count: @Sendable (Database, ColumnSums) throws -> StoreCensus

    /// Performs all of them on one thread, after the check that the clone is sound.
    ///
    /// - Returns: The census with sums.
    package func perform(_ db: Database) throws -> StoreCensus {
      let sums = try StoreCheck.requireSound(db, "the clone", summing: columns)
      try checkIntegrity(db)
      try checkValues(db)
      return try count(db, sums)
    }
  }

  /// Checks the contents of the clone.
  ///
  /// - Parameters:
  ///   - census: Returns the census of the store before the stages. Called last, so that it can be taken meanwhile. It
  ///     needs the path's `queriesBefore`. Without its sums, all links count as changed.
  ///   - store: The store before the stages.
  ///   - read: Performs these checks, on one thread or on two, and returns the census with its sums.
  /// - Throws: The error of `census`; `verificationFailed`, `unexpectedStructure`, `missingRequiredValues`,
  ///   `brokenReferences`, `modelCount`, `rowsLost` or `invariantViolated`; `invalidPlan` or `timeLimit` where a query
  ///   of an invariant fails.
  package func verify(
    _ db: Database, before census: () throws -> StoreCensus, of store: EarlierStore,
    read: (Database, Reading) throws -> StoreCensus = { try $1.perform($0) }
  ) throws -> Result {
    // First, because the other checks read rows through this schema.
    try requireSchema(db)
    guard try db.integer("PRAGMA page_size") == before.pageSize,
      try db.integer("PRAGMA auto_vacuum") == before.autoVacuum
    else {
      throw Self.failed("the page size or the auto-vacuum mode of the clone was changed")
    }
    // The clone may name join tables differently: structures that differ only in these names are equal.
    let named = try path.layout(of: path.last, layout.format.conventions(of: db))
    let after = try read(
      db,
      Reading(
        columns: references.columns(db, named),
        checkIntegrity: { [policy] db in
          if policy == .full { try StoreCheck.requireIntegrity(db, "the clone") }
        },
        checkValues: { db in
          try requireValues(db)
          try requireComposites(db, named)
          try requireStorageClasses(db, named, of: store)
        },
        count: { [queries = path.queriesAfter] in
          try StoreCensus($0, layout: named, queries: queries, sums: $1)
        }))
    let structure = try StoreStructure.read(db, format: layout.format)
    guard try layout.matchesEntityList(of: db) else {
      throw Self.failed("Z_PRIMARYKEY does not list the entities of version \(path.to)")
    }
    let earlier = try census()
    // Rows of no entity that the store had before may stay, because no app reads them.
    let strays = earlier.strayRows.values.reduce(0, +)
    if let (table, count) = after.strayRows.min(by: { $0.key < $1.key }),
      after.strayRows.values.reduce(0, +) > strays
    {
      throw Self.failed("\(count) rows of \(table) belong to no entity of version \(path.to)")
    }
    if path.isLightweight { try requireStrays(after, earlier, of: store.layout) }
    try requireReferences(
      ReferenceFacts(db: db, layout: named, before: earlier, after: after, store: store))
    try requireOthers(after, earlier)
    let notes = try compareCounts(after, earlier)
    if !path.invariants.isEmpty {
      try requireInvariants(
        InvariantFacts(db: db, layout: named, before: earlier, after: after, store: store))
    }
    return Result(census: after, structure: structure, notes: notes)
  }

  /// Without code, rows that belong to no entity stay so, unless their table is removed. A new entity may have their
  /// number.
  private func requireStrays(
    _ after: StoreCensus, _ before: StoreCensus, of layout: any StoreLayout
  ) throws(InstarError) {
    let kept = Set(
      layout.entityLayouts.filter { !path.removedEntities.contains($0.name) }.map(\.table))
    let expected = before.strayRows.filter { kept.contains($0.key) }.values.reduce(0, +)
    let found = after.strayRows.values.reduce(0, +)
    guard found < expected else { return }
    let tables = before.strayRows.keys.filter(kept.contains).sorted().joined(separator: ", ")
    throw InstarError(
      .verificationFailed, Self.what,
      cause:
        "\(expected) rows of \(tables) belonged to no entity, and \(expected - found) of them are gone "
        + "or belong to one now",
      next: "delete these rows or give them the Z_ENT of an entity, then " + CommandText.repetition)
  }

  /// The text of each statement in the schema must be what the stages leave: as before the run, or as the changes of
  /// schema write it. A closure can write rows, but not change the schema.
  func requireSchema(_ db: Database) throws {
    let differences = try SchemaText(db).differences(from: expected.text)
    guard differences.isEmpty else {
      throw InstarError(
        .unexpectedStructure, Self.what,
        cause: "the clone's schema is not the one that the stages to version \(path.to) produce:\n"
          + differences.prefix(Self.differenceLimit).joined(separator: "\n"),
        next:
          "remove SQL that changes tables, indexes, triggers or views from willMigrate and didMigrate"
      )
    }
  }

  private static let differenceLimit = 20

  static let what = "cannot verify the migrated clone"

  static func failed(_ cause: String) -> InstarError {
    InstarError(
      .verificationFailed, what, cause: cause,
      next: "correct the code of the plan's stages, build the plugin again and install it")
  }
}

// MARK: - The parts

extension CloneVerification {
  private func requireValues(_ db: Database) throws {
    guard let missing = try layout.firstMissingValues(db) else { return }
    throw InstarError(
      .missingRequiredValues, Self.what, cause: missing.sentence,
      next: path.alwaysRequired(missing.owner, missing.property)
        ? MissingValues.cure
        : "give '\(missing.property)' a default, or set it in willMigrate; "
          + "set a new property in didMigrate", rows: missing.rows)
  }

  /// Refuses rows without a value of a property in several columns that is new or became required. The columns of
  /// others may be NULL, and a store may have such rows from before.
  private func requireComposites(_ db: Database, _ layout: any StoreLayout) throws {
    for (entity, property) in path.newlyRequiredComposites {
      guard let rows = try layout.entity(named: entity)?.rows(db, without: property) else {
        continue
      }
      throw InstarError(
        .missingRequiredValues, Self.what,
        cause: rows.sentence(of: entity, have: "no value for the required property '\(property)'"),
        next: "give '\(property)' a default, or set it in willMigrate or didMigrate", rows: rows)
    }
  }

  /// Without code, stages keep every row of an entity that stays, and every link between such rows. Code of the plan
  /// may remove some; the report then notes which became fewer.
  private func compareCounts(
    _ after: StoreCensus, _ before: StoreCensus
  ) throws -> [String] {
    var notes = after.strayRows.sorted { $0.key < $1.key }.map { table, count in
      "\(count) rows of \(table) belong to no entity, as before the run; they are unchanged"
    }
    let continuations = path.relationshipContinuations
    for entity in path.last.entities {
      if let earlier = path.origin(of: entity.name).flatMap({ before.rows[$0] }),
        let now = after.rows[entity.name], earlier != now
      {
        if path.isLightweight {
          throw InstarError(
            .rowsLost, Self.what,
            cause: "\(entity.name) had \(earlier) rows and has \(now), although no stage runs code",
            next: InstarError.adviceOnDefect)
        }
        if now < earlier { notes.append("\(entity.name) had \(earlier) rows and has \(now)") }
      }
      for relationship in entity.relationships {
        let name = "\(entity.name).\(relationship.name)"
        // It may have moved to several entities, which have the links together.
        guard let origin = path.origin(of: relationship, in: entity.name),
          let names = continuations[origin], names[0] == name, let earlier = before.links[origin]
        else { continue }
        let now = names.compactMap { after.links[$0]?.count }.reduce(0, +)
        if now < earlier.count { notes.append(try note(names, earlier, now: now)) }
      }
    }
    return notes
  }

  /// - Returns: How many links relationships of the last version had before and have now.
  private func note(
    _ names: [String], _ before: StoreCensus.Links, now: Int
  ) throws(InstarError) -> String {
    let have = names.count == 1 ? "has" : "have"
    let names = names.joined(separator: " and ")
    guard path.isLightweight else {
      return "\(names) had \(before.count) links and \(have) \(now)"
    }
    if now < before.count - before.ending {
      let ending =
        before.ending == 0
        ? ""
        : ", of which \(before.ending) end with removed entities"
          + (before.losing > 0 ? " or in rows that lose the relationship," : ",")
      throw InstarError(
        .rowsLost, Self.what,
        cause: "\(names) had \(before.count) links\(ending) and \(have) \(now), "
          + "although no stage runs code",
        next: InstarError.adviceOnDefect)
    }
    let ended = before.count - now
    let lost = min(before.losing, ended)
    let reasons = [
      ended > lost ? "\(ended - lost) ended with the rows of removed entities" : nil,
      lost > 0 ? "\(lost) were of rows that no longer have the relationship" : nil,
    ].compactMap(\.self)
    return "\(names) had \(before.count) links and \(have) \(now): "
      + reasons.joined(separator: ", ")
  }
}
