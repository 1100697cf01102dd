import Instar
import Testing

/// Whole runs of an app's container over a stage in which a class no longer inherits from another.
@Suite("A class that leaves its hierarchy in a lightweight stage", .serialized)
struct LeftHierarchyTests {
  private let store: MigratedStore

  init() throws {
    store = try MigratedStore()
    Script.isLightweight = true
  }

  /// An animal of no subclass, a dog and a puppy, each with all that its class has.
  private func makeAnimals() throws {
    let owner = KennelV1.Owner(name: "o")
    let house = KennelV1.House(name: "h")
    let club = KennelV1.Club(name: "c")
    let animals = [
      KennelV1.Animal(name: "animal"), KennelV1.Dog(name: "dog"), KennelV1.Puppy(name: "puppy"),
    ]
    for (number, animal) in animals.enumerated() {
      animal.owner = owner
      animal.things = [KennelV1.Thing(name: "of \(animal.name)")]
      guard let dog = animal as? KennelV1.Dog else { continue }
      dog.tricks = number
      dog.house = house
      dog.clubs = [club]
      dog.toys = [KennelV1.Toy(name: "of \(animal.name)")]
    }
    try store.make(KennelV1.self, animals)
  }

  @Test(
    "a class that leaves its hierarchy keeps rows, values and links; somebody has to accept the loss of inherited values"
  )
  func left() throws {
    try makeAnimals()
    let plan = ScriptedPlan<KennelV1, KennelV2>.self
    let error = try store.refusal(KennelV2.self, plan)
    #expect(error.code == .unacceptedLoss)
    for loss in [
      "2 non-null values of Animal.name", "2 links of Animal.owner", "2 links of Animal.things",
    ] {
      #expect(
        error.cause.contains("drops \(loss): rows of Dog and Puppy no longer have this property"),
        "\(error)")
    }
    Script.losses = ["Animal.name", "Animal.owner", "Animal.things"]
    let context = ModelContext(try store.open(KennelV2.self, plan))
    let animals = try context.fetch(FetchDescriptor<KennelV2.Animal>())
    #expect(animals.map(\.name) == ["animal"])
    #expect(animals.map { $0.owner?.name } == ["o"])
    #expect(animals.map { $0.things.map(\.name) } == [["of animal"]])
    let dogs = try context.fetch(
      FetchDescriptor<KennelV2.Dog>(sortBy: [SortDescriptor(\.tricks)]))
    #expect(dogs.map { "\(type(of: $0)) \($0.tricks)" } == ["Dog 1", "Puppy 2"])
    #expect(dogs.map { $0.house?.name } == ["h", "h"])
    #expect(dogs.map { $0.clubs.map(\.name) } == [["c"], ["c"]])
    #expect(dogs.map { $0.toys.map(\.name) } == [["of dog"], ["of puppy"]])
    let houses = try context.fetch(FetchDescriptor<KennelV2.House>())
    #expect(houses.map { $0.dogs.map(\.tricks).sorted() } == [[1, 2]])
    #expect(try context.fetchCount(FetchDescriptor<KennelV2.Thing>()) == 3)
  }

  @Test(
    "a class that leaves its hierarchy keeps also what it inherited, if it declares that itself")
  func redeclared() throws {
    try makeAnimals()
    let context = ModelContext(
      try store.open(KennelV3.self, ScriptedPlan<KennelV1, KennelV3>.self))
    let animals = try context.fetch(FetchDescriptor<KennelV3.Animal>())
    #expect(animals.map(\.name) == ["animal"])
    #expect(animals.map { $0.things.map(\.name) } == [["of animal"]])
    let dogs = try context.fetch(
      FetchDescriptor<KennelV3.Dog>(sortBy: [SortDescriptor(\.name)]))
    #expect(dogs.map(\.name) == ["dog", "puppy"])
    #expect(dogs.map { $0.owner?.name } == ["o", "o"])
    #expect(dogs.map { $0.things.map(\.name) } == [["of dog"], ["of puppy"]])
    #expect(try store.notes.isEmpty)
  }

  @Test(
    "a class that leaves its hierarchy needs a stage with code if other models may have links to its rows"
  )
  func links() throws {
    let dog = WalkV1.Dog()
    try store.make(WalkV1.self, [WalkV1.Walk(1, WalkV1.Animal()), WalkV1.Walk(2, dog)])
    let error = try store.refusal(WalkV1.self, WalkV2.self)
    #expect(error.code == .needsCustomStage)
    #expect(
      error.cause.contains(
        "Dog no longer inherits from Animal, so links of Walk.animal to its rows must be removed"),
      "\(error)")
    #expect(try store.planError(WalkV1.self, WalkV2.self).code == .needsCustomStage)
    Script.isLightweight = false
    Script.losses = ["Animal.name"]
    #expect(try store.refusal(WalkV1.self, WalkV2.self).code == .brokenReferences)
    Script.willMigrate = { context in
      for walk in try context.fetch(FetchDescriptor<WalkV1.Walk>())
      where walk.animal is WalkV1.Dog {
        walk.animal = nil
      }
    }
    let context = ModelContext(try store.open(WalkV2.self, ScriptedPlan<WalkV1, WalkV2>.self))
    let walks = try context.fetch(
      FetchDescriptor<WalkV2.Walk>(sortBy: [SortDescriptor(\.number)]))
    #expect(walks.map { $0.animal == nil } == [false, true])
    #expect(try context.fetchCount(FetchDescriptor<WalkV2.Dog>()) == 1)
  }

  // MARK: Models

  enum KennelV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] {
      [
        Animal.self, Dog.self, Puppy.self, House.self, Club.self, Toy.self, Owner.self, Thing.self,
      ]
    }

    @Model
    class Animal {
      var name: String = ""
      var owner: Owner?
      var things: [Thing] = []
      init(name: String) { self.name = name }
    }

    @Model
    class Dog: Animal {
      var tricks: Int = 0
      var house: House?
      var clubs: [Club] = []
      var toys: [Toy] = []
      override init(name: String) { super.init(name: name) }
    }

    @Model
    final class Puppy: Dog {
      var weeks: Int = 0
      override init(name: String) { super.init(name: name) }
    }

    @Model
    final class House {
      var name: String
      @Relationship(inverse: \Dog.house) var dogs: [Dog] = []
      init(name: String) { self.name = name }
    }

    @Model
    final class Club {
      var name: String
      @Relationship(inverse: \Dog.clubs) var members: [Dog] = []
      init(name: String) { self.name = name }
    }

    @Model
    final class Toy {
      var name: String
      init(name: String) { self.name = name }
    }

    @Model
    final class Owner {
      var name: String
      init(name: String) { self.name = name }
    }

    @Model
    final class Thing {
      var name: String
      init(name: String) { self.name = name }
    }
  }

  enum KennelV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] {
      [
        Animal.self, Dog.self, Puppy.self, House.self, Club.self, Toy.self, Owner.self, Thing.self,
      ]
    }

    @Model
    class Animal {
      var name: String = ""
      var owner: Owner?
      var things: [Thing] = []
      init(name: String) { self.name = name }
    }

    @Model
    class Dog {
      var tricks: Int = 0
      var house: House?
      var clubs: [Club] = []
      var toys: [Toy] = []
      init(name: String) {}
    }

    @Model
    final class Puppy: Dog {
      var weeks: Int = 0
      override init(name: String) { super.init(name: name) }
    }

    @Model
    final class House {
      var name: String
      @Relationship(inverse: \Dog.house) var dogs: [Dog] = []
      init(name: String) { self.name = name }
    }

    @Model
    final class Club {
      var name: String
      @Relationship(inverse: \Dog.clubs) var members: [Dog] = []
      init(name: String) { self.name = name }
    }

    @Model
    final class Toy {
      var name: String
      init(name: String) { self.name = name }
    }

    @Model
    final class Owner {
      var name: String
      init(name: String) { self.name = name }
    }

    @Model
    final class Thing {
      var name: String
      init(name: String) { self.name = name }
    }
  }

  enum KennelV3: VersionedSchema {
    static let versionIdentifier = Schema.Version(3, 0, 0)
    static var models: [any PersistentModel.Type] {
      [
        Animal.self, Dog.self, Puppy.self, House.self, Club.self, Toy.self, Owner.self, Thing.self,
      ]
    }

    @Model
    class Animal {
      var name: String = ""
      var owner: Owner?
      var things: [Thing] = []
      init(name: String) { self.name = name }
    }

    @Model
    class Dog {
      var tricks: Int = 0
      var house: House?
      var clubs: [Club] = []
      var toys: [Toy] = []
      var name: String = ""
      var owner: Owner?
      var things: [Thing] = []
      init(name: String) { self.name = name }
    }

    @Model
    final class Puppy: Dog {
      var weeks: Int = 0
      override init(name: String) { super.init(name: name) }
    }

    @Model
    final class House {
      var name: String
      @Relationship(inverse: \Dog.house) var dogs: [Dog] = []
      init(name: String) { self.name = name }
    }

    @Model
    final class Club {
      var name: String
      @Relationship(inverse: \Dog.clubs) var members: [Dog] = []
      init(name: String) { self.name = name }
    }

    @Model
    final class Toy {
      var name: String
      init(name: String) { self.name = name }
    }

    @Model
    final class Owner {
      var name: String
      init(name: String) { self.name = name }
    }

    @Model
    final class Thing {
      var name: String
      init(name: String) { self.name = name }
    }
  }

  enum WalkV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Animal.self, Dog.self, Walk.self] }

    @Model
    class Animal {
      var name: String = ""
      init() {}
    }

    @Model
    final class Dog: Animal {
      var tricks: Int = 0
      override init() { super.init() }
    }

    @Model
    final class Walk {
      var number: Int
      var animal: Animal?
      init(_ number: Int, _ animal: Animal) {
        self.number = number
        self.animal = animal
      }
    }
  }

  enum WalkV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Animal.self, Dog.self, Walk.self] }

    @Model
    class Animal {
      var name: String = ""
      init() {}
    }

    @Model
    final class Dog {
      var tricks: Int = 0
      init() {}
    }

    @Model
    final class Walk {
      var number: Int
      var animal: Animal?
      init(_ number: Int, _ animal: Animal) {
        self.number = number
        self.animal = animal
      }
    }
  }
}
