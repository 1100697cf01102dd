import Foundation
import InstarSchema
import InstarStore
import InstarWire
import Synchronization
import Testing

@testable import InstarChange

/// Each row of the table in "Choosing a stage" whose change Instar makes itself. Those that also have code of the plan
/// are in `TransformStageTests` and `SQLStageTests`.
private struct DecidedChange: CustomTestStringConvertible {
  let testDescription: String
  let kind: StageManifest.Kind
  let formats: [StoreFormat]
  /// Whether the store has rows.
  let hasRows: Bool
  let old: [Schema.Entity]
  let new: [Schema.Entity]

  init(
    _ description: String, _ old: [Schema.Entity], _ new: [Schema.Entity],
    kind: StageManifest.Kind = .lightweight, hasRows: Bool = true,
    formats: [StoreFormat] = [.coredata, .plain]
  ) {
    testDescription = description
    self.kind = kind
    self.formats = formats
    self.hasRows = hasRows
    self.old = old
    self.new = new
  }

  private static func attribute(
    _ name: String, _ type: Schema.AttributeType = .string, from original: String? = nil,
    isOptional: Bool = true, default value: AttributeValue? = nil
  ) -> Schema.Attribute {
    Schema.Attribute(
      name: name, originalName: original, type: type, isOptional: isOptional && value == nil,
      defaultValue: value)
  }

  private static func note(
    _ attributes: [Schema.Attribute], unique: [[String]] = [], indices: [[String]] = [],
    of folder: Schema.Relationship? = nil
  ) -> Schema.Entity {
    Schema.Entity(
      name: "Note", attributes: attributes, relationships: [folder].compactMap(\.self),
      uniquenessConstraints: unique, indices: indices)
  }

  private static func link(
    _ name: String, to destination: String, inverse: String?, isToOne: Bool,
    deleteRule: Schema.Relationship.DeleteRule = .nullify
  ) -> Schema.Relationship {
    Schema.Relationship(
      name: name, destination: destination, inverseName: inverse, deleteRule: deleteRule,
      maximumModelCount: isToOne ? 1 : 0, isToOneRelationship: isToOne)
  }

  /// A folder, and its notes that refer to it.
  private static func linked(_ rule: Schema.Relationship.DeleteRule) -> [Schema.Entity] {
    [
      note([title], of: link("folder", to: "Folder", inverse: "notes", isToOne: true)),
      Schema.Entity(
        name: "Folder", attributes: [attribute("name")],
        relationships: [
          link("notes", to: "Note", inverse: "folder", isToOne: false, deleteRule: rule)
        ]),
    ]
  }

  /// Notes that refer to one tag, or to many.
  private static func tagged(isToOne: Bool) -> [Schema.Entity] {
    [
      note([title], of: link("tag", to: "Tag", inverse: "notes", isToOne: isToOne)),
      Schema.Entity(
        name: "Tag", attributes: [attribute("name")],
        relationships: [link("notes", to: "Note", inverse: "tag", isToOne: false)]),
    ]
  }

  /// Notes and tags with arrays of each other.
  private static func paired(areInverse: Bool) -> [Schema.Entity] {
    [
      note(
        [title], of: link("tags", to: "Tag", inverse: areInverse ? "notes" : nil, isToOne: false)),
      Schema.Entity(
        name: "Tag", attributes: [attribute("name")],
        relationships: [
          link("notes", to: "Note", inverse: areInverse ? "tags" : nil, isToOne: false)
        ]),
    ]
  }

  private static let title = attribute("title")
  private static let pages = attribute("pages", .int32)
  private static let folder = Schema.Entity(name: "Folder", attributes: [attribute("name")])

  static let all = [
    DecidedChange("add an optional property", [note([title])], [note([title, pages])]),
    DecidedChange(
      "add a required property with an initial value", [note([title])],
      [note([title, attribute("pages", .int32, default: .integer(3))])]),
    DecidedChange(
      "add a required property without an initial value, where the model has no rows",
      [note([title])], [note([title, attribute("pages", .int32, isOptional: false)])],
      hasRows: false),
    DecidedChange("remove a property", [note([title, pages])], [note([title])]),
    DecidedChange("remove a model", [note([title]), folder], [note([title])]),
    DecidedChange(
      "rename a property", [note([title, pages])],
      [note([attribute("heading", from: "title"), pages])]),
    DecidedChange("change a delete rule", linked(.nullify), linked(.cascade)),
    DecidedChange(
      "add an index", [note([title, pages])], [note([title, pages], indices: [["pages"]])]),
    DecidedChange("add a model", [note([title])], [note([title]), folder]),
    DecidedChange(
      "required → optional", [note([attribute("title", isOptional: false)])], [note([title])]),
    // An ordinary table keeps the links elsewhere then, and the plan says so.
    DecidedChange(
      "to-one → to-many", tagged(isToOne: true), tagged(isToOne: false), formats: [.coredata]),
    DecidedChange(
      "make two arrays each other's inverse", paired(areInverse: false),
      paired(areInverse: true), formats: [.coredata]),
    DecidedChange(
      "optional → required, with an initial value", [note([title, pages])],
      [note([title, attribute("pages", .int32, default: .integer(3))])]),
    DecidedChange(
      "optional → required, without an initial value, where every row has a value",
      [note([title])], [note([attribute("title", isOptional: false)])], hasRows: false),
    DecidedChange(
      "make a property unique", [note([attribute("title", isOptional: false)])],
      [note([attribute("title", isOptional: false)], unique: [["title"]])]),
    DecidedChange(
      "give an integer fewer bits", [note([title, pages])],
      [note([title, attribute("pages", .int16)])]),
    DecidedChange(
      "give an integer more bits", [note([title, pages])],
      [note([title, attribute("pages", .int64)])]),
    DecidedChange(
      "change the type of a property", [note([title, pages])],
      [note([title, attribute("pages", .string)])], kind: .custom),
    DecidedChange(
      "let a model inherit from another one", [note([title]), folder],
      [
        Schema.Entity(name: "Note", attributes: [title], superentityName: "Folder"), folder,
      ], kind: .custom, formats: [.coredata]),
    DecidedChange(
      "move a property to a subclass",
      [note([title, pages]), Schema.Entity(name: "Page", superentityName: "Note")],
      [note([title]), Schema.Entity(name: "Page", attributes: [pages], superentityName: "Note")],
      formats: [.coredata]),
    DecidedChange(
      "let a model no longer inherit from another one",
      [note([title]), Schema.Entity(name: "Page", attributes: [pages], superentityName: "Note")],
      [note([title]), Schema.Entity(name: "Page", attributes: [pages])], formats: [.coredata]),
  ]

  /// The rows of the table in "Choosing a stage", each with its changes above. The last ones have code of the plan.
  static let rows: [String: [String]] = [
    "add an optional property": ["add an optional property"],
    "add a required property with an initial value": [
      "add a required property with an initial value"
    ],
    "add a required property without an initial value": [
      "add a required property without an initial value, where the model has no rows"
    ],
    "remove a property or a model": ["remove a property", "remove a model"],
    "rename a property: `@Attribute(originalName:)`": ["rename a property"],
    "change a delete rule; add an index; add a model": [
      "change a delete rule", "add an index", "add a model",
    ],
    "required → optional": ["required → optional"],
    "to-one → to-many": ["to-one → to-many"],
    "make two arrays each other's inverse": ["make two arrays each other's inverse"],
    "optional → required, with an initial value": ["optional → required, with an initial value"],
    "optional → required, without": [
      "optional → required, without an initial value, where every row has a value"
    ],
    "make a property unique, values do not repeat": ["make a property unique"],
    "make a property unique, values repeat": ["make a property unique"],
    "give an integer more or fewer bits (`Int16`, `Int32`, `Int`)": [
      "give an integer fewer bits", "give an integer more bits",
    ],
    "change the type of a property": ["change the type of a property"],
    "let a model inherit from another one that it did not inherit from": [
      "let a model inherit from another one"
    ],
    "move a property to a subclass": ["move a property to a subclass"],
    "let a model no longer inherit from another one": [
      "let a model no longer inherit from another one"
    ],
    "compute a property from others, split or merge properties": [],
    "restructure relationships, insert or delete models": [],
    "correct values by SQL": [],
  ]

  func stage(_ format: StoreFormat) throws -> SchemaStage {
    let versions = try [old, new].enumerated().map { index, entities in
      let schema = Schema(
        entities: format == .plain ? entities.map(Self.inTable) : entities,
        version: Schema.Version(index + 1, 0, 0))
      return PlanVersion(
        schema: schema, layout: try schema.layout(), name: "V\(schema.version.major)")
    }
    return SchemaStage(
      from: versions[0], to: versions[1], kind: kind, columnOrder: .asNew, isImplicit: false)
  }

  private static func inTable(_ entity: Schema.Entity) -> Schema.Entity {
    var entity = entity
    entity.attributes.insert(Schema.Attribute(name: "id", type: .int64), at: 0)
    entity.table = Schema.Table(entity.name.lowercased())
    return entity
  }
}

@Suite("The statements that a plan shows for a change")
struct PlannedChangesTests {
  @Test(
    "a plan of a store with rows shows the statements that a run executes, in their order",
    arguments: DecidedChange.all.flatMap { change in change.formats.map { (change, $0) } })
  fileprivate func statements(change: DecidedChange, format: StoreFormat) throws {
    let stage = try change.stage(format)
    let planned = PlannedMigration.Stage(
      from: stage.from.schema.version, to: stage.to.schema.version, kind: stage.kind,
      planned: try EmptyStore(of: stage.from.layout).make(SchemaChange(stage)))
    let lines = Mutex<[String]>([])
    let log = SQLLog(SQLDebug(level: 1)) { line in lines.withLock { $0.append(line) } }
    let connection = try StoreConnection(inMemory: log)
    try connection.perform { session in
      for statement in try stage.from.layout.emptyStoreStatements() { try session.run(statement) }
      if change.hasRows {
        // The rows of one class are enough for a table: they have the same keys for each.
        for entity in stage.from.layout.entityLayouts where entity.superNumber == 0 {
          try session.insertRows(of: entity, format)
        }
      }
    }
    lines.withLock { $0 = [] }
    try connection.perform { session in
      let schemaChange = SchemaChange(stage)
      _ = try schemaChange.begin(session).finish(session)
      try schemaChange.endLinks(session)
    }
    try connection.close()
    #expect(changes(lines.withLock { $0 }) == planned.statements.filter(isChange))
  }

  @Test("the statements are compared for every row of the table in \"Choosing a stage\"")
  func rows() throws {
    let page = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../Sources/Instar/Instar.docc/ChoosingAStage.md")
    let cells = try String(contentsOf: page, encoding: .utf8).split(separator: "\n")
      .filter { $0.hasPrefix("| ") }
      .compactMap { $0.split(separator: "|").first?.trimmingCharacters(in: .whitespaces) }
    #expect(Set(cells.dropFirst()) == Set(DecidedChange.rows.keys))
    #expect(
      Set(DecidedChange.rows.values.joined()) == Set(DecidedChange.all.map(\.testDescription)))
  }

  /// The logged statements without those that read.
  private func changes(_ lines: [String]) -> [String] {
    let mark = "CoreData: sql: "
    return lines.filter { $0.hasPrefix(mark) }.map { String($0.dropFirst(mark.count)) }
      .filter(isChange)
  }

  private func isChange(_ statement: String) -> Bool {
    // What is kept aside for the count of lost values changes no table of the store.
    if statement.contains("instar_carried") { return false }
    return ["CREATE", "DROP", "ALTER", "INSERT", "UPDATE", "DELETE", "REPLACE"]
      .contains(where: statement.hasPrefix)
  }
}
