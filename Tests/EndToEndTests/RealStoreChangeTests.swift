import Foundation
import GRDB
import InstarSchema
import InstarSource
import InstarStore
import InstarTestSupport
import InstarWire
import Testing

/// What an app team does whose versions were never written down: its store's schema is imported and becomes the first
/// version of a plan, a changed one the second.
@Suite(
  "Changing the schema of every store of Apple's frameworks", .serialized,
  .enabled(if: RealStores.areGiven, "INSTAR_REAL_STORES is not set"))
struct RealStoreChangeTests {
  private struct Subject {
    var name: String
    var path: String
    var before: Schema
    var after: Schema
    var layoutBefore: CoreDataLayout
    var contents: Contents
  }

  @Test(
    "imported, changed in every lightweight way at once and migrated, a store keeps everything that both versions have"
  )
  func lightweight() async throws {
    let stores = try TemporaryFolder()
    let sources = try TemporaryFolder()
    var subjects: [Subject] = []
    var plans: [String] = []
    var seen: Set<String> = []
    var paths = try AppleStore.withoutModels.map { try $0.write(to: stores) }
    for source in RealStores.all {
      let name = URL(fileURLWithPath: source).lastPathComponent
      paths.append(try #require(try RealStores.copy(name, to: stores)))
    }
    for path in paths {
      let name = URL(fileURLWithPath: path).lastPathComponent
      let (probe, introspection) = try StoreIntrospection.read(path)
      guard seen.insert(probe.identity.fingerprint).inserted else { continue }
      let type = "Store\(subjects.count)"
      let before = introspection.schema
      let answer = try await CommandLineTool.run(
        "schema", "import", path, "--name", "\(type)V1", "-o", sources.path("\(type)V1.swift"))
      try #require(answer.status == 0, Comment(rawValue: answer.messages))
      let after = ChangedSchema(after: before).schema
      let text = VersionedSchemaSource(
        after, name: "\(type)V2", comment: "The next version."
      ).text
      try Data(text.utf8).write(to: sources.url.appendingPathComponent("\(type)V2.swift"))
      plans.append(type)
      let layout = try CoreDataLayout(schema: before, conventions: probe.conventions)
      subjects.append(
        Subject(
          name: name, path: path, before: before, after: after, layoutBefore: layout,
          contents: try Contents(path, layout)))
    }
    let plugin = sources.path("Stores.so")
    try Data(Self.planSource(plans).utf8)
      .write(to: sources.url.appendingPathComponent("Plans.swift"))
    let built = try await CommandLineTool.run(
      "plugin", "build", sources.path, "-o", plugin, "--debug")
    try #require(built.status == 0, Comment(rawValue: built.messages))

    let shown = try await CommandLineTool.run(
      ["plan", "--plugin", plugin, "--json", "--adopt", "1.0.0"] + subjects.map(\.path))
    let shownPlans = Dictionary(
      try shown.objects(PlanReport.self).map { ($0.store, $0.migration) },
      uniquingKeysWith: { first, _ in first })
    let answer = try await CommandLineTool.run(
      ["migrate", "--plugin", plugin, "--state-dir", stores.path("state"), "--json"]
        + ["--adopt", "1.0.0", "-com.apple.CoreData.SQLDebug", "1"] + subjects.map(\.path))
    let reportsInOrder = try answer.objects(RunReport.self)
    let reports = Dictionary(
      reportsInOrder.map { ($0.store, $0) }, uniquingKeysWith: { first, _ in first })
    let planned = reportsInOrder.flatMap {
      shownPlans[$0.store]??.stages.flatMap(\.statements) ?? []
    }
    #expect(answer.executedStatements == planned)
    #expect(shownPlans.values.allSatisfy { $0?.notes == [] })
    for subject in subjects {
      let comment = Comment(rawValue: subject.name)
      let report = try #require(reports[subject.path], comment)
      #expect(report.result == .migrated, "\(subject.name): \(report.error.map { "\($0)" } ?? "")")
      guard report.result == .migrated else { continue }
      try check(subject, comment)
    }
  }

  private static func planSource(_ names: [String]) -> String {
    let plans = names.map {
      """
      enum PlanOf\($0): SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [\($0)V1.self, \($0)V2.self] }
        static var stages: [MigrationStage] {
          [.lightweight(fromVersion: \($0)V1.self, toVersion: \($0)V2.self)]
        }
      }
      """
    }
    let list = names.map { "PlanOf\($0).self" }.joined(separator: ", ")
    return (["import Instar", "#InstarPlugin(\(list))"] + plans).joined(separator: "\n\n")
  }

  /// The relationships that join tables are named after.
  private static func joinNames(_ statements: Set<String>) -> Set<String> {
    Set(
      statements.compactMap { statement in
        statement.firstMatch(of: #/^CREATE TABLE Z_[0-9]+([A-Z0-9_]+) /#).map { String($0.1) }
      })
  }

  private func check(_ subject: Subject, _ comment: Comment) throws {
    let conventions = try StoreReader.withReadOnlyStore(subject.path) {
      try CoreDataConventions(of: $0)
    }
    // No rule explains the name of a join table; a run keeps it: see the names below.
    let layout = try CoreDataLayout(schema: subject.after, conventions: conventions)
    let after = try Contents(subject.path, layout)
    let expected = subject.contents.changed(to: subject.after)
    for (what, lines) in expected.lines.sorted(by: { $0.key < $1.key }) {
      #expect(after.lines[what] == lines, "\(subject.name): \(what)")
    }
    #expect(after.lines.count == expected.lines.count, comment)
    let before = subject.contents.metadata
    if before.count == 1 {
      // Instar writes a new property list.
      #expect(after.metadata["Z_UUID"] == before["Z_UUID"], comment)
    } else {
      #expect(after.metadata == before, comment)
    }
    #expect(after.history == expected.history, comment)
    // Laid out as a store that is made today.
    let statements = layout.createStatements.filter { statement in
      statement.hasPrefix("CREATE") && !statement.contains(" Z_PRIMARYKEY ")
        && !statement.contains(" Z_METADATA ") && !statement.contains(" Z_MODELCACHE ")
    }
    #expect(after.statements == Set(statements), comment)
    // After which of its two relationships a join table is named no rule tells: it stays.
    #expect(
      Self.joinNames(subject.contents.statements).isSubset(of: Self.joinNames(after.statements)),
      comment)
  }
}

/// All that a store holds, by names instead of numbers.
private struct Contents {
  /// The rows of each entity, the values of each attribute and the links of each relationship, as text.
  private(set) var lines: [String: [String]] = [:]
  /// What no change of schema touches.
  private(set) var metadata: [String: String] = [:]
  private(set) var history: [String] = []
  private(set) var statements: Set<String> = []

  private static let changingKeys: Set<String> = [
    "NSStoreModelVersionHashes", "NSStoreModelVersionIdentifiers",
    "NSStoreModelVersionHashesDigest", "NSStoreModelVersionChecksumKey",
  ]

  init(_ path: String, _ layout: CoreDataLayout) throws {
    try self.init(of: path, layout)
  }

  private init(of path: String, _ layout: CoreDataLayout) throws {
    var lines: [String: [String]] = [:]
    var metadata: [String: String] = [:]
    var history: [String] = []
    var statements: Set<String> = []
    try StoreReader.withReadOnlyStore(path) { db in
      for entity in layout.entities {
        let rows = "FROM \(entity.table) WHERE Z_ENT = \(entity.number) ORDER BY Z_PK"
        lines[entity.name] = try String.fetchAll(
          db, sql: "SELECT Z_PK || ' ' || ifnull(Z_OPT, '-') \(rows)")
        for attribute in layout.entityWithInheritedProperties(entity).attributes {
          lines["\(entity.name).\(attribute.attribute.name)"] = try String.fetchAll(
            db, sql: "SELECT Z_PK || ' ' || quote(\(attribute.column.name)) \(rows)")
        }
        for relationship in entity.relationships {
          lines["\(entity.name).\(relationship.relationship.name)"] = try String.fetchAll(
            db, sql: Self.links(relationship, of: entity))
        }
      }
      if let known = try? CoreDataMetadata.read(db) {
        metadata = known.plist.filter { key, _ in
          !Self.changingKeys.contains(key) && !key.hasPrefix("Instar")
        }.mapValues { "\($0)" }
      }
      metadata["Z_UUID"] = try String.fetchOne(db, sql: "SELECT Z_UUID FROM Z_METADATA")
      let names = Dictionary(uniqueKeysWithValues: layout.entities.map { ($0.number, $0.name) })
      if try db.tableExists("ACHANGE") {
        history = try Row.fetchAll(
          db, sql: "SELECT ZENTITY, Z_PK, ZCHANGETYPE, ZENTITYPK, ZTRANSACTIONID FROM ACHANGE"
        ).map { row in
          let values = Array(row.databaseValues)
          let name = Int.fromDatabaseValue(values[0]).flatMap { names[$0] } ?? "?"
          return "\(name) " + values.dropFirst().map { "\($0)" }.joined(separator: " ")
        }.sorted()
      }
      statements = try String.fetchSet(
        db,
        sql: """
          SELECT sql FROM sqlite_schema WHERE type IN ('table', 'index') AND sql IS NOT NULL
            AND tbl_name NOT IN ('Z_PRIMARYKEY', 'Z_METADATA', 'Z_MODELCACHE', 'ACHANGE',
              'ATRANSACTION', 'ATRANSACTIONSTRING')
          """)
    }
    self.lines = lines
    self.metadata = metadata
    self.history = history
    self.statements = statements
  }

  /// "owner member", whichever way they are kept.
  private static func links(
    _ storage: EntityLayout.RelationshipStorage, of entity: EntityLayout
  ) -> String {
    switch storage.location {
    case .column(let key):
      """
      SELECT Z_PK || ' ' || \(key.list) FROM \(entity.table) WHERE \(key.list) IS NOT NULL
        AND Z_ENT IN (\(entity.numbers.map(String.init).joined(separator: ", "))) ORDER BY 1
      """
    case .foreignKey(let key):
      """
      SELECT \(key.list) || ' ' || Z_PK FROM \(storage.destinationTable)
      WHERE \(key.list) IS NOT NULL ORDER BY 1
      """
    case .joinTable(let name, let own, let other):
      "SELECT \(own.list) || ' ' || \(other.list) FROM \(name) ORDER BY 1"
    }
  }

  /// What is to be expected after the change to another version.
  func changed(to schema: Schema) -> Contents {
    var expected = self
    expected.lines = [:]
    var names: [String: String] = [:]
    for entity in schema.entities {
      names[entity.originalName] = entity.name
      let source = entity.originalName
      let rows = lines[source] ?? []
      expected.lines[entity.name] = rows
      var inherited: [Schema.Entity] = []
      var next: Schema.Entity? = entity
      while let current = next {
        inherited.append(current)
        next = current.superentityName.flatMap { schema.entity(named: $0) }
      }
      for attribute in inherited.flatMap(\.attributes) where !attribute.isEphemeral {
        let path = "\(entity.name).\(attribute.name)"
        let old = lines["\(source).\(attribute.originalName)"]
        let filled = attribute.isOptional ? nil : attribute.storedDefault.map(Self.quoted)
        if let old {
          expected.lines[path] = old.map { line in
            guard let filled, line.hasSuffix(" NULL"), line.split(separator: " ").count == 2
            else { return line }
            return "\(line.dropLast("NULL".count))\(filled)"
          }
        } else {
          expected.lines[path] = rows.map {
            "\($0.prefix { $0 != " " }) \(filled ?? "NULL")"
          }
        }
      }
      for relationship in entity.relationships {
        expected.lines["\(entity.name).\(relationship.name)"] =
          lines["\(source).\(relationship.originalName)"] ?? []
      }
    }
    expected.history = history.compactMap { line in
      let name = String(line.prefix { $0 != " " })
      return names[name].map { $0 + line.dropFirst(name.count) }
    }.sorted()
    return expected
  }

  private static func quoted(_ value: AttributeValue) -> String {
    switch value {
    case .integer(let integer): "\(integer)"
    case .real(let real): real == real.rounded() ? "\(Int(real))" : "\(real)"
    case .text(let text): "'\(text.replacingOccurrences(of: "'", with: "''"))'"
    case .blob: "NULL"
    }
  }
}
