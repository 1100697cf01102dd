import Instar

// Schemas and plans in the forms people write them in.

enum TripsSchemaV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Trip.self, Stay.self, Tag.self] }

  enum Kind: String, Codable { case business, leisure }

  struct Place: Codable, Equatable {
    var city: String
    var latitude: Double?
  }

  @Model
  final class Trip {
    #Unique<Trip>([\.number], [\.name, \.start])
    #Index<Trip>([\.name], [\.start, \.name])

    @Attribute(.unique) var uid: UUID
    var number: Int = 7
    var name: String = "untitled"
    var start: Date
    var kind: Kind = Kind.leisure
    var isDone: Bool = true
    @Attribute(originalName: "memo", hashModifier: "2") var note: String?
    @Attribute(.externalStorage, .preserveValueOnDeletion) var photo: Data?
    @Attribute(.ephemeral) var progress: Double = 0
    var place: Place?
    @Relationship(
      deleteRule: .cascade, minimumModelCount: 1, maximumModelCount: 3, inverse: \Stay.trip)
    var stays: [Stay] = []
    @Relationship(originalName: "labels", inverse: \Tag.trips, hashModifier: "x") var tags: [Tag] =
      []

    init(start: Date) {
      uid = UUID()
      self.start = start
    }
  }

  @Model
  final class Stay {
    var hotel: String
    var trip: Trip?
    init(hotel: String) { self.hotel = hotel }
  }

  @Model
  final class Tag {
    var text: String
    var trips: [Trip] = []
    init(text: String) { self.text = text }
  }
}

struct TripsSchemaV2: VersionedSchema {
  static var versionIdentifier: Schema.Version { Schema.Version(2, 0, 0) }
  static let models: [any PersistentModel.Type] = [Trip.self]
}

extension TripsSchemaV2 {
  @Model
  final class Trip {
    var name: String
    init(name: String) { self.name = name }
  }
}

enum EnumPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [TripsSchemaV1.self, TripsSchemaV2.self] }
  static var stages: [MigrationStage] { [toV2] }
  static let toV2 = MigrationStage.custom(
    fromVersion: TripsSchemaV1.self, toVersion: TripsSchemaV2.self, willMigrate: nil,
    didMigrate: nil)
}

struct StructPlan: SchemaMigrationPlan {
  static let schemas: [any VersionedSchema.Type] = [TripsSchemaV1.self, TripsSchemaV2.self]
  static let stages: [MigrationStage] = [
    .lightweight(fromVersion: TripsSchemaV1.self, toVersion: TripsSchemaV2.self)
  ]
}

final class ClassPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [TripsSchemaV1.self, TripsSchemaV2.self] }
  static var stages: [MigrationStage] {
    [
      .custom(fromVersion: TripsSchemaV1.self, toVersion: TripsSchemaV2.self) { context in
        for trip in try context.fetch(FetchDescriptor<TripsSchemaV1.Trip>()) { trip.name += "!" }
      } didMigrate: { context in
        try context.save()
      }
    ]
  }
}

typealias CurrentTrips = TripsSchemaV2
typealias CurrentTrip = CurrentTrips.Trip
