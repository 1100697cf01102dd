import Instar

// The two versions of the models behind the SampleModel stores among the real ones, which Apple's own lightweight
// migration brought from one to the other.

enum CarSchema1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] {
    [Car.self, SportCar.self, ExpensiveSportCar.self, Person.self]
  }

  @Model
  class Car {
    #Unique<Car>([\.numberPlate])
    var maker: String?
    var model: String?
    var numberPlate: String
    var markedForDeletionAsOf: Date?
    @Attribute(.transformable(by: "ColorTransformer")) var color: Data?
    var owner: Person?

    init(numberPlate: String) { self.numberPlate = numberPlate }
  }

  @Model
  class SportCar: Car {
    override init(numberPlate: String) { super.init(numberPlate: numberPlate) }
  }

  @Model
  final class ExpensiveSportCar: SportCar {
    var isLimitedEdition: Bool? = false

    override init(numberPlate: String) { super.init(numberPlate: numberPlate) }
  }

  @Model
  final class Person {
    #Unique<Person>([\.firstName, \.lastName])
    var id: UUID
    var firstName: String?
    var lastName: String?
    var updatedAt: Date
    var cars: [Car] = []

    init(updatedAt: Date) {
      id = UUID()
      self.updatedAt = updatedAt
    }
  }
}

enum CarSchema2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] {
    [Car.self, SportCar.self, LuxuryCar.self, Person.self]
  }

  @Model
  class Car {
    #Unique<Car>([\.numberPlate])
    #Index<Car>(.named("byMakerAndNumberPlate", [\.maker, \.numberPlate]))
    var maker: String?
    var model: String?
    var numberPlate: String
    var markedForDeletionAsOf: Date?
    var owner: Person?

    init(numberPlate: String) { self.numberPlate = numberPlate }
  }

  @Model
  class SportCar: Car {
    override init(numberPlate: String) { super.init(numberPlate: numberPlate) }
  }

  @Model(originalName: "ExpensiveSportCar")
  final class LuxuryCar: SportCar {
    var isLimitedEdition: Bool? = false

    override init(numberPlate: String) { super.init(numberPlate: numberPlate) }
  }

  @Model
  final class Person {
    #Unique<Person>([\.firstName, \.lastName])
    var firstName: String?
    var lastName: String?
    var updatedAt: Date
    var cars: [Car] = []

    init(updatedAt: Date) { self.updatedAt = updatedAt }
  }
}

enum CarPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [CarSchema1.self, CarSchema2.self] }
  static var stages: [MigrationStage] {
    [.lightweight(fromVersion: CarSchema1.self, toVersion: CarSchema2.self)]
  }
}

#InstarPlugin(CarPlan.self)
