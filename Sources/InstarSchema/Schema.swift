/// The complete set of entities of one version of an app's models.
///
/// A value: it holds no types and no connection, so it travels as JSON between processes. Made from model
/// types by `Schema(_:version:)` and `Schema(versionedSchema:)` of the SDK.
public struct Schema: Sendable, Hashable, Codable {
  /// The version this schema is a snapshot of.
  public var version: Version

  /// All entities, ordered by name.
  public var entities: [Entity] {
    get { connectedEntities }
    set { connectedEntities = Self.connected(newValue) }
  }

  private var connectedEntities: [Entity]

  /// The Swift types the entities were made from, by entity name; empty in a schema that came from another process.
  public var modelTypes: ModelTypes

  /// A schema of entities in any order; they are kept ordered by name.
  public init(entities: [Entity], version: Version, modelTypes: ModelTypes = ModelTypes([:])) {
    connectedEntities = Self.connected(entities.sorted { $0.name < $1.name })
    self.version = version
    self.modelTypes = modelTypes
  }

  private enum CodingKeys: String, CodingKey {
    case version, entities
  }

  /// Reads a schema of another process. Its `modelTypes` are empty.
  ///
  /// - Throws: `DecodingError`.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    self.init(
      entities: try container.decode([Entity].self, forKey: .entities),
      version: try container.decode(Version.self, forKey: .version))
  }

  /// Writes everything but `modelTypes`.
  ///
  /// - Throws: `EncodingError`.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(version, forKey: .version)
    try container.encode(entities, forKey: .entities)
  }

  /// The entities by their names.
  public var entitiesByName: [String: Entity] {
    entities.keyed(by: \.name)
  }

  /// The entity of that name, or `nil`.
  public func entity(named name: String) -> Entity? {
    entities.first { $0.name == name }
  }

  /// The same version with some of its entities. The types of all stay known.
  package func part(_ isIncluded: (String) -> Bool) -> Schema {
    Schema(
      entities: entities.filter { isIncluded($0.name) }, version: version, modelTypes: modelTypes)
  }

  /// The entities; if some inherit, each knows the others.
  private static func connected(_ entities: [Entity]) -> [Entity] {
    guard entities.contains(where: { $0.superentityName != nil }) else { return entities }
    return entities.map(EntityFamily(entities).connected)
  }
}

extension Schema {
  /// The Swift types behind a schema. Counts for nothing when schemas are compared, and does not travel: a schema is
  /// the same schema in a process that does not have the types.
  public struct ModelTypes: @unchecked Sendable, Hashable {
    // Metatypes are immutable; they are only not marked Sendable.
    /// The model class of each entity, by the entity's name.
    public let byEntityName: [String: any Any.Type]
    /// The entities that were not listed but are destinations of listed ones.
    public let reached: Set<String>
    /// All classes, those included that share the name of another one; empty where a schema has no such classes.
    public let all: [any Any.Type]
    /// Whether the schema is a `VersionedSchema`, in which relationships find their destination by the entity's name.
    package let isVersioned: Bool

    /// The types of a schema, by the names of their entities.
    public init(
      _ byEntityName: [String: any Any.Type], reached: Set<String> = [], all: [any Any.Type] = []
    ) {
      self.init(byEntityName, reached: reached, all: all, isVersioned: false)
    }

    package init(
      _ byEntityName: [String: any Any.Type], reached: Set<String>, all: [any Any.Type],
      isVersioned: Bool
    ) {
      self.byEntityName = byEntityName
      self.reached = reached
      self.all = all
      self.isVersioned = isVersioned
    }

    /// Always true.
    public static func == (left: ModelTypes, right: ModelTypes) -> Bool { true }
    /// Adds nothing, as all are equal.
    public func hash(into hasher: inout Hasher) {}
  }
}
