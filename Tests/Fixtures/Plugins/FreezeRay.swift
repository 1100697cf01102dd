import Instar

// The two versions of the models behind the FreezeRay stores among the real ones.

enum FreezeRaySchemaV1: VersionedSchema {
  static var versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [User.self] }

  @Model
  final class User {
    var name: String
    var createdAt: Date

    init(name: String, createdAt: Date) {
      self.name = name
      self.createdAt = createdAt
    }
  }
}

enum FreezeRaySchemaV2: VersionedSchema {
  static var versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [User.self] }

  @Model
  final class User {
    var name: String
    var email: String?
    var createdAt: Date

    init(name: String, createdAt: Date) {
      self.name = name
      self.createdAt = createdAt
    }
  }
}

enum FreezeRayPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] {
    [FreezeRaySchemaV1.self, FreezeRaySchemaV2.self]
  }
  static var stages: [MigrationStage] {
    [.lightweight(fromVersion: FreezeRaySchemaV1.self, toVersion: FreezeRaySchemaV2.self)]
  }
}

#InstarPlugin(FreezeRayPlan.self)
