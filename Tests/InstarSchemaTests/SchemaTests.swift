import Foundation
import InstarSchema
import Testing

@Suite("Schema values")
struct SchemaTests {
  @Test("versions are compared number by number")
  func versionOrder() {
    #expect(Schema.Version(1, 2, 0) < Schema.Version(1, 10, 0))
    #expect(Schema.Version(1, 2, 3).description == "1.2.3")
    #expect(Schema.Version("1.2.3") == Schema.Version(1, 2, 3))
    for text in ["", "1", "1.2", "1.2.3.4", "1.2.x", "-1.2.3", "1..3", "+1.2.3", "٣.1.2"] {
      #expect(Schema.Version(text) == nil)
    }
  }

  @Test("a schema is the same after its way through JSON")
  func schemaThroughJSON() throws {
    let schema = Schema(
      entities: [
        Schema.Entity(
          name: "Note",
          attributes: [
            Schema.Attribute(
              name: "uid", type: .string, options: [.unique], defaultValue: .text("x"))
          ],
          relationships: [
            Schema.Relationship(name: "folder", destination: "Folder", isToOneRelationship: true)
          ], uniquenessConstraints: [["uid"]]),
        Schema.Entity(name: "Folder"),
      ], version: Schema.Version(1, 1, 0))
    let data = try JSONEncoder().encode(schema)
    #expect(try JSONDecoder().decode(Schema.self, from: data) == schema)
    #expect(schema.entities.map(\.name) == ["Folder", "Note"])
  }
}

@Suite("Matching a store to a plan")
struct SchemaMatchTests {
  private func structure(_ columns: String...) -> StoreStructure {
    StoreStructure(
      tables: [
        StoreStructure.Table(
          name: "ZNOTE", columns: columns.map { StoreStructure.Column(name: $0, type: "VARCHAR") })
      ], indexes: [])
  }

  private func identity(_ version: Schema.Version?, _ structure: StoreStructure) -> StoreIdentity {
    StoreIdentity(
      format: .coredata, version: version, entityNames: ["Note"], structure: structure,
      fingerprint: "")
  }

  private func candidate(_ version: Schema.Version, _ columns: StoreStructure) -> VersionManifest {
    VersionManifest(
      schema: Schema(entities: [Schema.Entity(name: "Note")], version: version),
      structure: columns, fingerprint: "")
  }

  private var candidates: [VersionManifest] {
    [
      candidate(Schema.Version(1, 0, 0), structure("ZA")),
      candidate(Schema.Version(2, 0, 0), structure("ZA", "ZB")),
    ]
  }

  @Test("declared version and structure decide between behind and current")
  func declared() {
    let behind = SchemaMatch(
      of: identity(Schema.Version(1, 0, 0), structure("ZA")), among: candidates)
    #expect(behind.state == .behind)
    let current = SchemaMatch(
      of: identity(Schema.Version(2, 0, 0), structure("ZB", "ZA")), among: candidates)
    #expect(current.state == .current)
  }

  @Test("a declared version with another structure is not believed")
  func lyingVersion() {
    let match = SchemaMatch(
      of: identity(Schema.Version(2, 0, 0), structure("ZA")), among: candidates)
    #expect(match.state == .unknown)
    #expect(match.differences == ["column ZNOTE.ZB is missing"])
  }

  @Test("a store of models without a version, which declares 1.0.0, is what it is built like")
  func unsaidVersion() {
    let match = SchemaMatch(
      of: identity(Schema.Version(1, 0, 0), structure("ZA", "ZB")), among: candidates)
    #expect(match.state == .unversioned && match.version == Schema.Version(2, 0, 0))
    let neither = SchemaMatch(
      of: identity(Schema.Version(1, 0, 0), structure("ZC")), among: candidates)
    #expect(neither.state == .unknown && neither.nearest == Schema.Version(1, 0, 0))
  }

  @Test("a store with the structure of several versions is unversioned, and the versions are named")
  func severalVersions() {
    let last = candidate(Schema.Version(3, 0, 0), structure("ZA", "ZB"))
    for declared in [nil, Schema.Version(1, 0, 0)] {
      let match = SchemaMatch(
        of: identity(declared, structure("ZA", "ZB")), among: candidates + [last])
      #expect(match.state == .unversioned && match.version == nil)
      #expect(match.fitting == [Schema.Version(2, 0, 0), Schema.Version(3, 0, 0)])
      #expect(match.reason.hasSuffix("versions 2.0.0, 3.0.0"))
      #expect(match.differences.isEmpty)
    }
  }

  @Test("a later version of the same app is ahead, of another app unknown")
  func ahead() {
    let later = identity(Schema.Version(3, 0, 0), structure("ZA", "ZC"))
    #expect(SchemaMatch(of: later, among: candidates).state == .ahead)
    var foreign = later
    foreign.entityNames = ["Invoice"]
    #expect(SchemaMatch(of: foreign, among: candidates).state == .unknown)
  }

  @Test("without a version the structure decides, if it is exactly one version's")
  func unversioned() {
    let match = SchemaMatch(of: identity(nil, structure("ZA", "ZB")), among: candidates)
    #expect(match.state == .unversioned)
    #expect(match.version == Schema.Version(2, 0, 0))
    let other = SchemaMatch(of: identity(nil, structure("ZA", "ZB", "ZC")), among: candidates)
    #expect(other.state == .unknown)
    #expect(other.nearest == Schema.Version(2, 0, 0))
    #expect(other.differences == ["column ZNOTE.ZC is not expected"])
  }
}

@Suite("The difference of two schemas")
struct SchemaDifferenceTests {
  private func schema(_ attributes: Schema.Attribute...) -> Schema {
    Schema(
      entities: [Schema.Entity(name: "Note", attributes: attributes)],
      version: Schema.Version(1, 0, 0))
  }

  @Test("an explicit rename goes before a property of the same name")
  func renameFirst() {
    let difference = SchemaDifference(
      from: schema(Schema.Attribute(name: "content", type: .string)),
      to: schema(
        Schema.Attribute(name: "content", type: .data, isOptional: true),
        Schema.Attribute(name: "contentOld", originalName: "content", type: .string)))
    #expect(
      difference.changes.map(\.sentence) == [
        "adds Note.content (Data?)", "renames Note.content to contentOld",
      ])
    #expect(difference.changes.allSatisfy { $0.reasonForCustomStage == nil })
  }

  @Test("an original name that is gone already means the property itself")
  func staleOriginalName() {
    let attribute = Schema.Attribute(name: "title", originalName: "name", type: .string)
    #expect(SchemaDifference(from: schema(attribute), to: schema(attribute)).changes.isEmpty)
  }

  @Test("a difference that needs code says why")
  func needsCode() {
    let difference = SchemaDifference(
      from: schema(
        Schema.Attribute(name: "size", type: .string),
        Schema.Attribute(name: "title", type: .string, isOptional: true),
        Schema.Attribute(name: "rank", type: .int16)),
      to: schema(
        Schema.Attribute(name: "size", type: .int64),
        Schema.Attribute(name: "title", type: .string),
        Schema.Attribute(name: "uid", type: .string), Schema.Attribute(name: "rank", type: .int64)))
    #expect(
      difference.changes.compactMap(\.reasonForCustomStage) == [
        "values of Note.size must be converted from String to Int",
        "Note.title becomes required, and rows without a value need one",
        "Note.uid is required, and existing rows have no value for it",
      ])
  }

  @Test("an attribute in memory only has no values to lose or to require")
  func inMemoryOnly() {
    func attribute(_ name: String, isStored: Bool) -> Schema.Attribute {
      Schema.Attribute(name: name, type: .bool, options: isStored ? [] : [.ephemeral])
    }
    let difference = SchemaDifference(
      from: schema(
        attribute("isOpen", isStored: false), attribute("isShown", isStored: true),
        attribute("isRead", isStored: false), attribute("isGone", isStored: false)),
      to: schema(
        attribute("isOpen", isStored: false), attribute("isShown", isStored: false),
        attribute("isRead", isStored: true), attribute("isNew", isStored: false)))
    #expect(
      difference.changes.map { "\($0.kind): \($0.sentence)" } == [
        "bookkeeping: removes Note.isGone, which is in memory only",
        "destructive: keeps Note.isShown in memory only, and removes the values of Note.isShown",
        "additive: stores Note.isRead, which was in memory only",
        "additive: adds Note.isNew (in memory only)",
      ])
    #expect(
      difference.changes.compactMap(\.reasonForCustomStage) == [
        "Note.isRead is required, and existing rows have no value for it"
      ])
  }
}
