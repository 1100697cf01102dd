import Instar

enum PlacesV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Place.self, Visit.self] }

  @Model
  final class Place {
    var name: String
    @Relationship(deleteRule: .cascade, inverse: \Visit.place) var visits: [Visit] = []
    init(name: String) { self.name = name }
  }

  @Model
  final class Visit {
    var day: Int
    var place: Place?
    init(day: Int) { self.day = day }
  }
}

enum PlacesV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Place.self, Visit.self] }

  @Model
  final class Place {
    var name: String
    var note: String?
    @Relationship(deleteRule: .cascade, inverse: \Visit.place) var visits: [Visit] = []
    init(name: String) { self.name = name }
  }

  @Model
  final class Visit {
    var day: Int
    var place: Place?
    init(day: Int) { self.day = day }
  }
}

enum PlacesPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [PlacesV1.self, PlacesV2.self] }
  static var stages: [MigrationStage] {
    [.lightweight(fromVersion: PlacesV1.self, toVersion: PlacesV2.self)]
  }
}
