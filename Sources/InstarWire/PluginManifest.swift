public import InstarSchema

/// What a plugin says of itself: the answer to the worker's verb `describe`.
public struct PluginManifest: Sendable, Codable, Hashable {
  public var plans: [PlanManifest]

  public init(plans: [PlanManifest]) {
    self.plans = plans
  }
}

/// One migration plan: its schemas, oldest first, and its stages in the order in which they run.
public struct PlanManifest: Sendable, Codable, Hashable {
  public var name: String
  public var versions: [VersionManifest]
  public var stages: [StageManifest]
  /// Where plain stores of the plan say which version they are at.
  public var versionSource = VersionSource.userVersion
  /// Which version what other tools say stands for.
  public var importedVersions: [ToolVersion: Schema.Version] = [:]

  public init(name: String, versions: [VersionManifest], stages: [StageManifest]) {
    self.name = name
    self.versions = versions
    self.stages = stages
  }

  /// The versions as `SchemaMatch` wants them.
  public var candidates: [SchemaMatch.Candidate] {
    versions.map {
      SchemaMatch.Candidate(
        version: $0.schema.version, entityNames: $0.schema.entities.map(\.name),
        structure: $0.structure, format: $0.schema.format)
    }
  }
}

/// One version of a plan: its schema, and what a store of it is made of.
public struct VersionManifest: Sendable, Codable, Hashable {
  public var schema: Schema
  public var structure: StoreStructure
  public var fingerprint: String
  /// The name of the `VersionedSchema` type, without the types around it.
  public var name: String?

  public init(
    schema: Schema, structure: StoreStructure, fingerprint: String, name: String? = nil
  ) {
    self.name = name
    self.schema = schema
    self.structure = structure
    self.fingerprint = fingerprint
  }
}

public struct StageManifest: Sendable, Codable, Hashable {
  public enum Kind: String, Sendable, Codable, Hashable {
    case lightweight, custom
  }

  public var from: Schema.Version
  public var to: Schema.Version
  public var kind: Kind

  public init(from: Schema.Version, to: Schema.Version, kind: Kind) {
    self.from = from
    self.to = to
    self.kind = kind
  }
}
