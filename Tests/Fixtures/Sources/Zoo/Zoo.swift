// swift-format-ignore-file
import Instar

enum ZooSchemaV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] {
    [Animal.self, Bird.self, Parrot.self, Keeper.self]
  }

  @Model class Animal: Comparable, CustomStringConvertible {
    #Unique<Animal>([\.name])
    private(set) var name: String
    var born: Date?
    var keepers: [Keeper] = []
    var parent: Animal?
    @Relationship(inverse: \Animal.parent) var young: [Animal] = []

    init(name: String) { self.name = name }

    var sound: String { "…" }
    var description: String { "\(name): \(sound)" }
    func rename(to name: String) { self.name = name }
    static func < (left: Animal, right: Animal) -> Bool { left.name < right.name }
  }
}

enum ZooPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [ZooSchemaV1.self] }
  static var stages: [MigrationStage] { [] }
}
