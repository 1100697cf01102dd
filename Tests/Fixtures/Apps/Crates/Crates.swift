import Instar

/// Two stages, one with code, over rows that take a while to copy.
enum CratesV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Crate.self, Item.self] }

  @Model
  final class Crate {
    var number: Int
    var contents: String
    @Relationship(deleteRule: .cascade, inverse: \Item.crate) var items: [Item] = []
    init(number: Int, contents: String) {
      self.number = number
      self.contents = contents
    }
  }

  @Model
  final class Item {
    var name: String
    var crate: Crate?
    init(name: String) { self.name = name }
  }
}

enum CratesV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Crate.self, Item.self] }

  @Model
  final class Crate {
    var number: Int
    @Attribute(originalName: "contents") var filling: String
    var length: Int?
    @Relationship(deleteRule: .cascade, inverse: \Item.crate) var items: [Item] = []
    init(number: Int, filling: String) {
      self.number = number
      self.filling = filling
    }
  }

  @Model
  final class Item {
    var name: String
    var crate: Crate?
    init(name: String) { self.name = name }
  }
}

enum CratesV3: VersionedSchema {
  static let versionIdentifier = Schema.Version(3, 0, 0)
  static var models: [any PersistentModel.Type] { [Crate.self, Item.self] }

  @Model
  final class Crate {
    @Attribute(.unique) var number: Int
    var filling: String
    var length: Int = 0
    @Relationship(deleteRule: .cascade, inverse: \Item.crate) var items: [Item] = []
    init(number: Int, filling: String) {
      self.number = number
      self.filling = filling
    }
  }

  @Model
  final class Item {
    var name: String
    var crate: Crate?
    init(name: String) { self.name = name }
  }
}

enum CratesPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] {
    [CratesV1.self, CratesV2.self, CratesV3.self]
  }
  static var stages: [MigrationStage] { [measure, makeUnique] }

  static let measure = MigrationStage.custom(
    fromVersion: CratesV1.self, toVersion: CratesV2.self, willMigrate: nil,
    didMigrate: { context in
      for crate in try context.fetch(FetchDescriptor<CratesV2.Crate>()) {
        crate.length = crate.filling.count
      }
    })

  static let makeUnique = MigrationStage.lightweight(
    fromVersion: CratesV2.self, toVersion: CratesV3.self)
}

typealias Crate = CratesV3.Crate
