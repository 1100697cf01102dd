import InstarSchema
import Testing

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
