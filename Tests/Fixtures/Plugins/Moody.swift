import Instar

// The five versions of the models behind the Moody stores among the real ones (objc.io, "Core Data"), and a plan for
// the way that its readers go: regions first inherit from one entity, then are entities of their own, then continents
// go.

enum Moody1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] {
    [GeographicRegion.self, Continent.self, Country.self, Mood.self]
  }

  @Model
  class GeographicRegion {
    #Unique<GeographicRegion>([\.numericISO3166Code, \.uniquenessDummy])
    #Index<GeographicRegion>([\.markedForDeletionDate, \.updatedAt])
    var numericISO3166Code: Int16 = 0
    var uniquenessDummy: Int16 = 0
    var numberOfMoods: Int = 0
    var markedForDeletionDate: Date?
    var updatedAt: Date

    init(updatedAt: Date) { self.updatedAt = updatedAt }
  }

  @Model
  final class Continent: GeographicRegion {
    var numberOfCountries: Int = 0
    var countries: [Country] = []

    override init(updatedAt: Date) { super.init(updatedAt: updatedAt) }
  }

  @Model
  final class Country: GeographicRegion {
    var continent: Continent?
    var moods: [Mood] = []

    override init(updatedAt: Date) { super.init(updatedAt: updatedAt) }
  }

  @Model
  final class Mood {
    #Index<Mood>(
      [\.markedForDeletionDate], [\.remoteIdentifier],
      [\.markedForRemoteDeletion, \.markedForDeletionDate, \.date])
    var date: Date
    var latitude: Double?
    var longitude: Double?
    var creatorID: String?
    var remoteIdentifier: String?
    var markedForDeletionDate: Date?
    var markedForRemoteDeletion: Bool = false
    @Attribute(.transformable(by: "ColorsTransformer")) var colors: Data?
    var country: Country?

    init(date: Date) { self.date = date }
  }
}

enum Moody2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] {
    [GeographicRegion.self, Continent.self, Country.self, Mood.self]
  }

  @Model
  class GeographicRegion {
    #Unique<GeographicRegion>([\.numericISO3166Code, \.uniquenessDummy])
    #Index<GeographicRegion>([\.markedForDeletionDate, \.updatedAt])
    var numericISO3166Code: Int16 = 0
    var uniquenessDummy: Int16 = 0
    var numberOfMoods: Int = 0
    var markedForDeletionDate: Date?
    var updatedAt: Date

    init(updatedAt: Date) { self.updatedAt = updatedAt }
  }

  @Model
  final class Continent: GeographicRegion {
    var numberOfCountries: Int = 0
    var countries: [Country] = []

    override init(updatedAt: Date) { super.init(updatedAt: updatedAt) }
  }

  @Model
  final class Country: GeographicRegion {
    var continent: Continent?
    var moods: [Mood] = []

    override init(updatedAt: Date) { super.init(updatedAt: updatedAt) }
  }

  @Model
  final class Mood {
    #Index<Mood>(
      [\.markedForDeletionDate], [\.remoteID],
      [\.markedForRemoteDeletion, \.markedForDeletionDate, \.date])
    var date: Date
    var latitude: Double?
    var longitude: Double?
    var creatorID: String?
    @Attribute(originalName: "remoteIdentifier") var remoteID: String?
    var markedForDeletionDate: Date?
    var markedForRemoteDeletion: Bool = false
    @Attribute(.transformable(by: "ColorsTransformer")) var colors: Data?
    var rating: Int16 = 0
    var country: Country?

    init(date: Date) { self.date = date }
  }
}

enum Moody3: VersionedSchema {
  static let versionIdentifier = Schema.Version(3, 0, 0)
  static var models: [any PersistentModel.Type] {
    [GeographicRegion.self, Continent.self, Country.self, Mood.self]
  }

  @Model
  class GeographicRegion {
    #Unique<GeographicRegion>([\.numericISO3166Code, \.uniquenessDummy])
    #Index<GeographicRegion>([\.markedForDeletionDate, \.updatedAt])
    var numericISO3166Code: Int16 = 0
    var uniquenessDummy: Int16 = 0
    var numberOfMoods: Int = 0
    var markedForDeletionDate: Date?
    var updatedAt: Date

    init(updatedAt: Date) { self.updatedAt = updatedAt }
  }

  @Model
  final class Continent: GeographicRegion {
    var numberOfCountries: Int = 0
    var countries: [Country] = []
    var moods: [Mood] = []

    override init(updatedAt: Date) { super.init(updatedAt: updatedAt) }
  }

  @Model
  final class Country: GeographicRegion {
    var continent: Continent?
    var moods: [Mood] = []

    override init(updatedAt: Date) { super.init(updatedAt: updatedAt) }
  }

  @Model
  final class Mood {
    #Index<Mood>(
      [\.markedForDeletionDate], [\.remoteID],
      [\.markedForRemoteDeletion, \.markedForDeletionDate, \.date])
    var date: Date
    var latitude: Double?
    var longitude: Double?
    var creatorID: String?
    var remoteID: String?
    var markedForDeletionDate: Date?
    var markedForRemoteDeletion: Bool = false
    @Attribute(.transformable(by: "ColorsTransformer")) var colors: Data?
    var rating: Int16 = 0
    var continent: Continent?
    var country: Country?

    init(date: Date) { self.date = date }
  }
}

enum Moody4: VersionedSchema {
  static let versionIdentifier = Schema.Version(4, 0, 0)
  static var models: [any PersistentModel.Type] { [Continent.self, Country.self, Mood.self] }

  @Model
  final class Continent {
    #Unique<Continent>([\.numericISO3166Code, \.uniquenessDummy])
    #Index<Continent>([\.markedForDeletionDate, \.updatedAt])
    var numericISO3166Code: Int16 = 0
    var uniquenessDummy: Int16 = 0
    var numberOfMoods: Int = 0
    var markedForDeletionDate: Date?
    var updatedAt: Date
    var numberOfCountries: Int = 0
    var countries: [Country] = []
    var moods: [Mood] = []

    init(updatedAt: Date) { self.updatedAt = updatedAt }
  }

  @Model
  final class Country {
    #Unique<Country>([\.numericISO3166Code, \.uniquenessDummy])
    #Index<Country>([\.markedForDeletionDate, \.updatedAt])
    var numericISO3166Code: Int16 = 0
    var uniquenessDummy: Int16 = 0
    var numberOfMoods: Int = 0
    var markedForDeletionDate: Date?
    var updatedAt: Date
    var continent: Continent?
    var moods: [Mood] = []

    init(updatedAt: Date) { self.updatedAt = updatedAt }
  }

  @Model
  final class Mood {
    #Index<Mood>(
      [\.markedForDeletionDate], [\.remoteID],
      [\.markedForRemoteDeletion, \.markedForDeletionDate, \.date])
    var date: Date
    var latitude: Double?
    var longitude: Double?
    var creatorID: String?
    var remoteID: String?
    var markedForDeletionDate: Date?
    var markedForRemoteDeletion: Bool = false
    @Attribute(.transformable(by: "ColorsTransformer")) var colors: Data?
    var rating: Int16 = 0
    var continent: Continent?
    var country: Country?

    init(date: Date) { self.date = date }
  }
}

enum Moody5: VersionedSchema {
  static let versionIdentifier = Schema.Version(5, 0, 0)
  static var models: [any PersistentModel.Type] { [Country.self, Mood.self] }

  @Model
  final class Country {
    #Unique<Country>([\.numericISO3166Code, \.uniquenessDummy])
    #Index<Country>([\.markedForDeletionDate, \.updatedAt])
    var numericISO3166Code: Int16 = 0
    var uniquenessDummy: Int16 = 0
    var numberOfMoods: Int = 0
    var markedForDeletionDate: Date?
    var updatedAt: Date
    var isoContinent: Int16? = 0
    var moods: [Mood] = []

    init(updatedAt: Date) { self.updatedAt = updatedAt }
  }

  @Model
  final class Mood {
    #Index<Mood>(
      [\.markedForDeletionDate], [\.remoteID],
      [\.markedForRemoteDeletion, \.markedForDeletionDate, \.date])
    var date: Date
    var latitude: Double?
    var longitude: Double?
    var creatorID: String?
    var remoteID: String?
    var markedForDeletionDate: Date?
    var markedForRemoteDeletion: Bool = false
    @Attribute(.transformable(by: "ColorsTransformer")) var colors: Data?
    var rating: Int16 = 0
    var country: Country?

    init(date: Date) { self.date = date }
  }
}

enum MoodyPlan: SchemaMigrationPlan {
  /// How many versions the plan has: tests look at each of them.
  static let versionCount = 5

  static var schemas: [any VersionedSchema.Type] {
    let all: [any VersionedSchema.Type] = [
      Moody1.self, Moody2.self, Moody3.self, Moody4.self, Moody5.self,
    ]
    return Array(all.prefix(versionCount))
  }

  static var stages: [MigrationStage] {
    let stages: [MigrationStage] = [
      .lightweight(fromVersion: Moody1.self, toVersion: Moody2.self),
      .custom(
        fromVersion: Moody2.self, toVersion: Moody3.self, willMigrate: nil,
        didMigrate: { context in
          for mood in try context.fetch(FetchDescriptor<Moody3.Mood>()) {
            mood.continent = mood.country?.continent
          }
        }),
      .lightweight(fromVersion: Moody3.self, toVersion: Moody4.self),
      .custom(
        fromVersion: Moody4.self, toVersion: Moody5.self,
        willMigrate: { context in
          for country in try context.fetch(FetchDescriptor<Moody4.Country>()) {
            if let continent = country.continent {
              continents[country.numericISO3166Code] = continent.numericISO3166Code
            }
          }
        },
        didMigrate: { context in
          for country in try context.fetch(FetchDescriptor<Moody5.Country>()) {
            country.isoContinent = continents[country.numericISO3166Code]
          }
        }),
    ]
    return Array(stages.prefix(versionCount - 1))
  }

  /// The codes of continents by those of their countries, from one closure to the next: a worker migrates one store
  /// at a time, on one thread.
  nonisolated(unsafe) static var continents: [Int16: Int16] = [:]
}

#InstarPlugin(MoodyPlan.self)
