import Foundation
import Instar
import InstarSchema
import InstarSource
import InstarStore
import InstarTestSupport
import InstarWire
import Testing

/// Sources of schemas, compiled to one plugin: each version the only one of a plan.
private struct ImportedPlugin {
  let folder: TemporaryFolder
  private var names: [String] = []

  init() throws { folder = try TemporaryFolder() }

  mutating func add(_ source: String, named name: String) throws {
    try Data(source.utf8).write(to: folder.url.appendingPathComponent("\(name).swift"))
    names.append(name)
  }

  /// What the plugin says of each version, by the name of its schema.
  func versions() async throws -> [String: VersionManifest] {
    let plans = names.map {
      """
      enum PlanOf\($0): SchemaMigrationPlan {
        static var schemas: [any VersionedSchema.Type] { [\($0).self] }
        static var stages: [MigrationStage] { [] }
      }
      """
    }
    let list = names.map { "PlanOf\($0).self" }.joined(separator: ", ")
    let source = (["import Instar", "#InstarPlugin(\(list))"] + plans).joined(separator: "\n\n")
    try Data(source.utf8).write(to: folder.url.appendingPathComponent("Plans.swift"))
    let plugin = folder.path("Imported.so")
    let built = try await CommandLineTool.run(
      "plugin", "build", folder.path, "-o", plugin, "--debug")
    try #require(built.status == 0, Comment(rawValue: built.messages))
    struct Inspection: Decodable {
      var plans: [PlanManifest]
    }
    let answer = try await CommandLineTool.run("plugin", "inspect", plugin, "--json")
    let inspection = try #require(
      try answer.objects(Inspection.self).first, Comment(rawValue: answer.output))
    var versions: [String: VersionManifest] = [:]
    for plan in inspection.plans {
      versions[String(plan.name.dropFirst("PlanOf".count))] = plan.versions.first
    }
    return versions
  }
}

/// Composites with and without values, and enums of both kinds.
enum ComposedSchema: VersionedSchema {
  static var versionIdentifier: Schema.Version { Schema.Version(1, 0, 0) }
  static var models: [any PersistentModel.Type] { [Letter.self] }

  @Model final class Letter {
    enum Kind: String, Codable { case note, parcel }
    enum State: Codable { case open, sent }
    struct Person: Codable {
      var name: String
      var born: Date?
    }

    var kind: Kind
    var state: State
    var lastState: State?
    var sender: Person
    var copied: Person?

    init(kind: Kind, state: State, sender: Person) {
      self.kind = kind
      self.state = state
      self.sender = sender
    }
  }
}

@Suite("imported schemas", .serialized)
struct ImportedSchemaTests {
  private struct Imported: Decodable {
    var fingerprint: String
    var source: String
  }

  @Test(
    "the source of every real store compiles, and has the store's structure",
    .enabled(if: RealStores.areGiven, "INSTAR_REAL_STORES is not set"))
  func realStores() async throws {
    let stores = try TemporaryFolder()
    var plugin = try ImportedPlugin()
    var fingerprints: [String: (store: String, fingerprint: String)] = [:]
    for (number, path) in RealStores.all.enumerated() {
      let name = URL(fileURLWithPath: path).lastPathComponent
      let store = try #require(try RealStores.copy(name, to: stores))
      let schema = "Store\(number)"
      let answer = try await CommandLineTool.run(
        "schema", "import", store, "--name", schema, "--json")
      #expect(answer.status == 0, Comment(rawValue: answer.messages))
      let imported = try #require(try answer.objects(Imported.self).first)
      try plugin.add(imported.source, named: schema)
      fingerprints[schema] = (name, imported.fingerprint)
    }
    #expect(!fingerprints.isEmpty)
    let versions = try await plugin.versions()
    for (schema, expected) in fingerprints {
      let comment = Comment(rawValue: expected.store)
      let version = try #require(versions[schema], comment)
      #expect(version.fingerprint == expected.fingerprint, comment)
    }
  }

  @Test("the source of a schema compiles to the same schema, whatever its names")
  func roundTrip() async throws {
    var schemas = Self.schemas
    schemas["MadeByInstar"] = try Self.schemaOfNewStore()
    var plugin = try ImportedPlugin()
    for (name, schema) in schemas {
      let source = VersionedSchemaSource(schema, name: name, comment: "A schema.")
      try plugin.add(source.text, named: name)
    }
    let versions = try await plugin.versions()
    for (name, schema) in schemas {
      let compiled = try #require(versions[name], Comment(rawValue: name))
      let comparison = SchemaComparison(
        from: .init(schema), to: .init(compiled.schema))
      #expect(comparison.changes.map(\.sentence) == [], Comment(rawValue: name))
      #expect(comparison.notes == [], Comment(rawValue: name))
      #expect(compiled.schema.version == schema.version)
      for entity in schema.entities {
        let inverses = compiled.schema.entity(named: entity.name)?.relationships.map {
          "\($0.name) \($0.destination) \($0.inverseName ?? "-") \($0.deleteRule.rawValue)"
        }
        #expect(
          inverses?.sorted()
            == entity.relationships.map {
              "\($0.name) \($0.destination) \($0.inverseName ?? "-") \($0.deleteRule.rawValue)"
            }.sorted(), Comment(rawValue: "\(name).\(entity.name)"))
      }
    }
    // Differences between declarations change nothing in a store, so a comparison leaves them out.
    let expected = Self.declarations(in: Schema(versionedSchema: ComposedSchema.self))
    let imported = try #require(schemas["MadeByInstar"])
    #expect(Self.declarations(in: imported) == expected)
    #expect(Self.declarations(in: try #require(versions["MadeByInstar"]).schema) == expected)
    // A raw value does not tell the name of its case, so the source has the type of the raw values.
    let kind = imported.entity(named: "Letter")?.attributesByName["kind"]
    #expect(kind?.declaration.isEnumeration == true)
  }

  /// The schema that Instar reads from a store that it made.
  private static func schemaOfNewStore() throws -> Schema {
    let folder = try TemporaryFolder()
    let path = folder.path("a.store")
    let container = try ModelContainer(
      for: Schema(versionedSchema: ComposedSchema.self),
      configurations: ModelConfiguration(url: URL(fileURLWithPath: path)))
    withExtendedLifetime(container) {}
    let found = try StoreIntrospection.read(path).introspection
    #expect(found.origin == .metadata)
    return found.schema
  }

  /// What the declarations of a schema's composites say beyond their columns.
  private static func declarations(in schema: Schema) -> [String] {
    schema.entities.flatMap { entity in
      entity.attributes.filter(\.isPartOfComposite).map { attribute in
        let declaration = attribute.declaration
        return "\(entity.name).\(attribute.name)"
          + (declaration.isEnumeration ? " enum" : "")
          + (declaration.isRequiredComposite ? " required" : "")
          + (declaration.isRequiredField ? " field" : "")
      }
    }.sorted()
  }

  private static func relationship(
    _ name: String, _ destination: String, inverse: String? = nil, many: Bool = false,
    _ rule: Schema.Relationship.DeleteRule = .nullify
  ) -> Schema.Relationship {
    Schema.Relationship(
      name: name, destination: destination, inverseName: inverse, deleteRule: rule,
      isToOneRelationship: !many)
  }

  private static let schemas: [String: Schema] = [
    "EveryType": Schema(
      entities: [
        Schema.Entity(
          name: "Everything",
          attributes: [
            Schema.Attribute(name: "bool", type: .bool, defaultValue: .integer(1)),
            Schema.Attribute(name: "int16", type: .int16, defaultValue: .integer(-3)),
            Schema.Attribute(name: "int32", type: .int32, defaultValue: .integer(70_000)),
            Schema.Attribute(name: "int64", type: .int64, defaultValue: .integer(.min)),
            Schema.Attribute(name: "decimal", type: .decimal, isOptional: true),
            Schema.Attribute(name: "double", type: .double, defaultValue: .real(0.1)),
            Schema.Attribute(name: "float", type: .float, isOptional: true),
            Schema.Attribute(
              name: "string", type: .string,
              defaultValue: .text("\"quoted\" \\ and\u{0}\n\u{202E}broken")),
            Schema.Attribute(name: "date", type: .date, defaultValue: .real(86_400)),
            Schema.Attribute(name: "data", type: .data, defaultValue: .blob([0, 1, 255])),
            Schema.Attribute(
              name: "longer", type: .data, defaultValue: .blob(Array(repeating: 7, count: 100))),
            Schema.Attribute(name: "uuid", type: .uuid, isOptional: true),
            Schema.Attribute(
              name: "url", type: .url, options: [.externalStorage],
              defaultValue: .text("https://example.org/?a=b")),
          ])
      ], version: Schema.Version(3, 2, 1)),

    "Indexes": Schema(
      entities: [
        {
          var car = Schema.Entity(
            name: "Car",
            attributes: [
              Schema.Attribute(name: "class", type: .string),
              Schema.Attribute(name: "year", type: .int64),
            ], indices: [["year"]])
          car.fetchIndexes = [
            Schema.FetchIndex(
              name: "byYear", elements: [.init("year", isAscending: false), .init("class")]),
            Schema.FetchIndex(
              name: "byClass", elements: [.init("class")], condition: "ZCLASS <> \"ZYEAR\""),
          ]
          return car
        }()
      ], version: Schema.Version(1, 0, 0)),

    "HiddenNames": Schema(
      entities: [
        Schema.Entity(
          name: "Data",
          attributes: [
            Schema.Attribute(name: "class", type: .data),
            Schema.Attribute(name: "init", type: .date, options: [.unique]),
            Schema.Attribute(name: "description", type: .string, isOptional: true),
            Schema.Attribute(name: "isDeleted", type: .bool, isOptional: true),
            Schema.Attribute(name: "id", type: .uuid, isOptional: true),
          ],
          relationships: [
            relationship("set", "Set", inverse: "data"),
            relationship("in", "String", inverse: "where", many: true, .cascade),
          ],
          uniquenessConstraints: [["init"]], indices: [["class", "init"]]),
        Schema.Entity(
          name: "Set", relationships: [relationship("data", "Data", inverse: "set", many: true)]),
        Schema.Entity(
          name: "String", attributes: [Schema.Attribute(name: "text", type: .string)],
          relationships: [relationship("where", "Data", inverse: "in")]),
        Schema.Entity(name: "Date", attributes: [Schema.Attribute(name: "when", type: .date)]),
        Schema.Entity(name: "Schema", attributes: [Schema.Attribute(name: "n", type: .int64)]),
        Schema.Entity(name: "Model", attributes: [Schema.Attribute(name: "n", type: .bool)]),
        Schema.Entity(
          name: "Attribute",
          attributes: [Schema.Attribute(name: "n", type: .double, options: [.unique])],
          uniquenessConstraints: [["n"]]),
        Schema.Entity(
          name: "Relationship", relationships: [relationship("next", "Relationship", many: true)]),
        Schema.Entity(name: "Optional", attributes: [Schema.Attribute(name: "x", type: .url)]),
        Schema.Entity(name: "Codable", attributes: [Schema.Attribute(name: "x", type: .uuid)]),
      ], version: Schema.Version(1, 0, 0)),

    "Relationships": Schema(
      entities: [
        Schema.Entity(
          name: "Node",
          relationships: [
            relationship("parent", "Node", inverse: "children"),
            relationship("children", "Node", inverse: "parent", many: true, .cascade),
            relationship("likes", "Node", inverse: "likedBy", many: true),
            relationship("likedBy", "Node", inverse: "likes", many: true),
            relationship("alone", "Node", many: true),
          ]),
        Schema.Entity(
          name: "A",
          relationships: [
            relationship("b", "B"), relationship("bs", "B", inverse: "as", many: true, .deny),
          ]),
        Schema.Entity(
          name: "B",
          relationships: [
            relationship("a", "A"), relationship("as", "A", inverse: "bs", many: true, .noAction),
          ]),
      ], version: Schema.Version(1, 0, 0)),

    "Composites": Schema(
      entities: [
        Schema.Entity(
          name: "Note",
          attributes: [
            Schema.Attribute(name: "author.name", type: .string, isOptional: true),
            Schema.Attribute(name: "author.born", type: .date, isOptional: true),
            Schema.Attribute(name: "kind.draft", type: .string, isOptional: true),
            Schema.Attribute(name: "kind.default", type: .string, isOptional: true),
          ]),
        Schema.Entity(name: "Author", attributes: [Schema.Attribute(name: "n", type: .int64)]),
      ], version: Schema.Version(1, 0, 0)),

    "Families": Schema(
      entities: [
        Schema.Entity(
          name: "Region", attributes: [Schema.Attribute(name: "name", type: .string)],
          relationships: [relationship("places", "Place", inverse: "region", many: true)]),
        Schema.Entity(
          name: "Country",
          attributes: [Schema.Attribute(name: "code", type: .string, options: [.unique])],
          uniquenessConstraints: [["code"]], superentityName: "Region"),
        Schema.Entity(name: "Empire", superentityName: "Country"),
        Schema.Entity(
          name: "Place", relationships: [relationship("region", "Region", inverse: "places")]),
      ], version: Schema.Version(1, 0, 0)),
  ]
}
