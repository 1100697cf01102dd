import GRDB
import InstarSchema
import InstarStore
import InstarWire
import Testing

@testable import InstarChange

private func attribute(
  _ name: String, _ type: Schema.AttributeType = .string, from original: String? = nil,
  default value: AttributeValue? = nil
) -> Schema.Attribute {
  Schema.Attribute(
    name: name, originalName: original, type: type, isOptional: value == nil, defaultValue: value)
}

private func note(
  _ attributes: [Schema.Attribute], named name: String = "Note", format: StoreFormat = .coredata
) -> Schema.Entity {
  var note = Schema.Entity(name: name, attributes: attributes)
  guard format == .plain else { return note }
  note.attributes.insert(
    Schema.Attribute(name: "id", type: .int64), at: note.attributes.startIndex)
  note.table = Schema.Table("note")
  return note
}

/// Versions whose last one cannot be reached from the first one in one change.
private struct Path: CustomTestStringConvertible {
  let testDescription: String
  let versions: [[Schema.Entity]]

  init(_ description: String, _ versions: [[Schema.Entity]]) {
    testDescription = description
    self.versions = versions
  }

  static let all = [
    Path(
      "removed, and added again without the values",
      [[note([attribute("a")])], [note([])], [note([attribute("a")])]]),
    Path(
      "renamed twice",
      [
        [note([attribute("a")])], [note([attribute("b", from: "a")])],
        [note([attribute("c", from: "b")])],
      ]),
    Path(
      "exchanged names by way of a third one",
      [
        [note([attribute("a"), attribute("b")])],
        [note([attribute("c", from: "a"), attribute("b")])],
        [note([attribute("c"), attribute("a", from: "b")])],
        [note([attribute("b", from: "c"), attribute("a")])],
      ]),
    Path(
      "added with one default, which is another one later",
      [
        [note([])], [note([attribute("a", default: .text("x"))])],
        [note([attribute("a", default: .text("y"))])],
      ]),
    Path(
      "made required with one default, which is another one later",
      [
        [note([attribute("a")])], [note([attribute("a", default: .text("x"))])],
        [note([attribute("a", default: .text("y"))])],
      ]),
    Path(
      "an entity goes, and another one of its name comes",
      [[note([attribute("a")])], [note([], named: "Other")], [note([attribute("a")])]]),
    Path(
      "a type changes",
      [
        [note([attribute("a", .int64)])], [note([attribute("a", .int64), attribute("b")])],
        [note([attribute("a", .int16), attribute("b")])],
      ]),
  ]
}

@Suite("Lightweight stages that follow each other")
struct FusedStagesTests {
  /// Lightweight stages through versions 1, 2, 3 and so on.
  private static func stages(_ versions: [[Schema.Entity]]) throws -> [SchemaStage] {
    try stages(
      through: versions.enumerated().map { index, entities in
        Schema(entities: entities, version: Schema.Version(index + 1, 0, 0))
      })
  }

  private static func stages(through schemas: [Schema]) throws -> [SchemaStage] {
    let versions = try schemas.map {
      PlanVersion(schema: $0, layout: try $0.layout(), name: "V\($0.version.major)")
    }
    return zip(versions, versions.dropFirst()).map {
      SchemaStage(from: $0, to: $1, kind: .lightweight, columnOrder: .asNew, isImplicit: false)
    }
  }

  /// What a store of the first version with some rows is after the stages.
  private struct Migrated: Equatable {
    var structure: StoreStructure
    /// By table. A row is its columns by name.
    var rows: [String: [String]]
  }

  private func migrated(by stages: [SchemaStage], _ format: StoreFormat) throws -> Migrated {
    let first = try #require(stages.first?.from.layout)
    let connection = try StoreConnection(inMemory: nil)
    return try connection.perform { session in
      for statement in try first.emptyStoreStatements() { try session.run(statement) }
      for entity in first.entityLayouts { try session.insertRows(of: entity, format) }
      for stage in stages { _ = try SchemaChange(stage).make(session) }
      let structure = try StoreStructure.read(session.database, format: format)
      var rows: [String: [String]] = [:]
      for table in structure.tables {
        let found = try Row.fetchAll(
          session.database, sql: "SELECT * FROM \(table.name) ORDER BY 1")
        rows[table.name] = found.map { row in
          row.sorted { $0.0 < $1.0 }.map { "\($0.0)=\($0.1)" }.joined(separator: " ")
        }
      }
      return Migrated(structure: structure, rows: rows)
    }
  }

  @Test(
    "lightweight stages that follow each other leave the same structure and rows, made as one or one by one",
    arguments: [StoreFormat.coredata, .plain])
  func sameResult(format: StoreFormat) throws {
    func version(_ attributes: [Schema.Attribute]) -> [Schema.Entity] {
      [note(attributes, format: format)]
    }
    let rating = attribute("rating", .int64, default: .integer(3))
    let stages = try Self.stages([
      version([attribute("title"), attribute("pages", .int64), attribute("author")]),
      version([
        attribute("title"), attribute("pages", .int64), attribute("author"), rating,
      ]),
      version([
        attribute("heading", from: "title"), attribute("author"), rating,
      ]),
      version([
        attribute("heading", from: "title"), rating,
        attribute("author", default: .text("nobody")),
      ]),
    ])
    let fused = SchemaStage.fused(stages)
    #expect(fused.map(\.parts) == [stages.map(\.manifest)])
    #expect(
      fused.first?.manifest
        == StageManifest(
          from: Schema.Version(1, 0, 0), to: Schema.Version(4, 0, 0), kind: .lightweight))
    let apart = try migrated(by: stages, format)
    let together = try migrated(by: fused, format)
    #expect(together == apart)
    let rows = try #require(together.rows[format == .plain ? "note" : "ZNOTE"])
    #expect(rows.count == 5)
    #expect(rows.allSatisfy { $0.lowercased().contains("rating=3") })
    #expect(rows.contains { $0.contains("nobody") } && rows.contains { $0.contains("text ") })
  }

  @Test(
    "lightweight stages that follow each other end in the same store, whatever lightweight changes they make",
    arguments: [StoreFormat.coredata, .plain])
  func random(format: StoreFormat) throws {
    var fusedPaths = 0
    for seed in UInt64(1)...60 {
      let stages = try Self.stages(through: RandomVersions.make(seed: seed, format))
      let fused = SchemaStage.fused(stages)
      #expect(fused.flatMap(\.parts) == stages.map(\.manifest), "seed \(seed)")
      if fused.count == stages.count { continue }
      fusedPaths += 1
      let apart = Result { try migrated(by: stages, format) }
      let together = Result { try migrated(by: fused, format) }
      switch (apart, together) {
      case (.success(let apart), .success(let together)):
        #expect(together == apart, "seed \(seed)")
      case (.failure(let error), _), (_, .failure(let error)):
        Issue.record("seed \(seed): \(error)")
      }
    }
    #expect(fusedPaths > 10)
  }

  @Test(
    "lightweight stages stay apart where the version between them decides what values are",
    arguments: Path.all)
  fileprivate func staysApart(path: Path) throws {
    let stages = try Self.stages(path.versions)
    let fused = SchemaStage.fused(stages)
    let last = try #require(stages.last)
    #expect(fused.last?.parts == [last.manifest])
  }

  @Test("lightweight stages stay apart on both sides of a custom stage")
  func custom() throws {
    let versions = [["a"], ["a", "b"], ["a", "b", "c"], ["a", "b", "c", "d"]]
      .map { [note($0.map { attribute($0) })] }
    var stages = try Self.stages(versions)
    stages[1] = SchemaStage(
      from: stages[1].from, to: stages[1].to, kind: .custom, columnOrder: .asNew,
      isImplicit: false)
    let fused = SchemaStage.fused(stages)
    #expect(fused.map(\.parts) == stages.map { [$0.manifest] })
    #expect(fused.allSatisfy { $0.fusionNote == nil })
  }

  @Test("lightweight stages that follow each other have one note, with all versions on the way")
  func oneNote() throws {
    let stages = try Self.stages(
      [["a"], ["a", "b"], ["a", "b", "c"]].map { [note($0.map { attribute($0) })] })
    #expect(
      SchemaStage.fused(stages).map(\.fusionNote)
        == ["one change of schema makes the lightweight stages 1.0.0 → 2.0.0 → 3.0.0"])
  }
}
