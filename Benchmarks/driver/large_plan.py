"""Writes the source of a large plan: 30 models with 20 properties in 2 versions, for the time of 'plugin build'."""

MODELS = 30

# Each kind of property that apps declare. `{next}` and `{previous}` are the models before and after.
PROPERTIES = """\
    @Attribute(.unique) var uid: String
    var title: String
    var subtitle: String = ""
    var count: Int = 0
    var weight: Double = 1.5
    var isDone: Bool = false
    var created: Date
    var updated: Date = Date.now
    var token: UUID = UUID()
    var link: URL?
    var note: String?
    var rating: Int?
    @Attribute(.externalStorage) var photo: Data?
    var amount: Decimal = 0
    var kind: Kind
    var mood: Mood?
    var tags: [String] = []
    var address: Address
    var owner: {previous}?
    @Relationship(deleteRule: .cascade, inverse: \\{next}.owner) var parts: [{next}] = []
"""

INITIALIZER = """\
    init(uid: String, title: String, created: Date, kind: Kind, address: Address) {
      self.uid = uid
      self.title = title
      self.created = created
      self.kind = kind
      self.address = address
    }
"""

TYPES = """\
import Foundation
import Instar

enum Kind: String, Codable { case plain, special }
enum Mood: Int, Codable { case calm, wild }
struct Address: Codable {
  var street = ""
  var number = 0
}
"""

PLAN = """\
enum LargePlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [LargeSchemaV1.self, LargeSchemaV2.self] }
  static var stages: [MigrationStage] {
    [MigrationStage.lightweight(fromVersion: LargeSchemaV1.self, toVersion: LargeSchemaV2.self)]
  }
}
#InstarPlugin(LargePlan.self)
"""


def model(number, version):
    name = f"Model{number}"
    properties = PROPERTIES.format(next=f"Model{(number + 1) % MODELS}", previous=f"Model{(number - 1) % MODELS}")
    if version == 2:
        properties = properties.replace("    var note:", '    @Attribute(originalName: "note") var remark:')
    return f"  @Model final class {name} {{\n{properties}\n{INITIALIZER}  }}\n"


def schema(version):
    models = ", ".join(f"Model{number}.self" for number in range(MODELS))
    classes = "\n".join(model(number, version) for number in range(MODELS))
    return (
        f"enum LargeSchemaV{version}: VersionedSchema {{\n"
        f"  static let versionIdentifier = Schema.Version({version}, 0, 0)\n"
        f"  static var models: [any PersistentModel.Type] {{ [{models}] }}\n\n{classes}}}\n")


def source():
    return "\n".join([TYPES, schema(1), schema(2), PLAN])
