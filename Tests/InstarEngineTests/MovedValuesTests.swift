import Instar
import InstarEngine
import InstarWire
import Testing

/// Whole runs of an app's container over changes of a hierarchy.
@Suite("Values of a property that moves to another class", .serialized)
struct MovedValuesTests {
  private let store: MigratedStore

  init() throws { store = try MigratedStore() }

  /// Two animals, three dogs and one cat, all with a weight.
  private func makeAnimals() throws {
    let models = (1...6).map { number -> AnimalsV1.Animal in
      let animal =
        switch number {
        case 1...2: AnimalsV1.Animal()
        case 3...5: AnimalsV1.Dog()
        default: AnimalsV1.Cat()
        }
      animal.weight = number
      return animal
    }
    try store.make(AnimalsV1.self, models)
  }

  @Test("values are carried over from all classes whose properties become one")
  func joined() throws {
    try store.make(JoinedV1.self, [JoinedV1.Cat("c"), JoinedV1.Dog("d"), JoinedV1.Dog("e")])
    let container = try store.open(JoinedV2.self, ScriptedPlan<JoinedV1, JoinedV2>.self)
    let animals = try ModelContext(container).fetch(FetchDescriptor<JoinedV2.Animal>())
    #expect(
      animals.map { "\(type(of: $0)) \($0.word ?? "-")" }.sorted() == ["Cat c", "Dog d", "Dog e"])
    #expect(try store.notes.isEmpty)
  }

  @Test(
    "values of several classes become one required property: rows without a value get its default, by the rule of their class",
    arguments: [true, false])
  func joinedRequired(isRebuilt: Bool) throws {
    try store.make(
      HalfV1.self,
      [HalfV1.Animal(), HalfV1.Cat("c"), HalfV1.Dog("d"), HalfV1.Dog(nil), HalfV1.Puppy("p")])
    let words: [String]
    if isRebuilt {
      let container = try store.open(UniqueV2.self, ScriptedPlan<HalfV1, UniqueV2>.self)
      words = try ModelContext(container).fetch(FetchDescriptor<UniqueV2.Animal>())
        .map { "\(type(of: $0)) \($0.word)" }
    } else {
      let container = try store.open(WholeV2.self, ScriptedPlan<HalfV1, WholeV2>.self)
      words = try ModelContext(container).fetch(FetchDescriptor<WholeV2.Animal>())
        .map { "\(type(of: $0)) \($0.word)" }
    }
    #expect(words.sorted() == ["Animal none", "Cat c", "Dog d", "Dog none", "Puppy p"])
    #expect(try store.notes.isEmpty)
  }

  @Test("values of all classes whose properties become one with another type are counted")
  func joinedWithType() throws {
    try store.make(JoinedV1.self, [JoinedV1.Cat("c"), JoinedV1.Dog("d"), JoinedV1.Dog("e")])
    let plan = ScriptedPlan<JoinedV1, JoinedV3>.self
    let error = try store.refusal(JoinedV3.self, plan)
    #expect(error.code == .unacceptedLoss)
    #expect(error.cause.contains("drops 1 non-null values of Cat.word:"), "\(error)")
    #expect(error.cause.contains("drops 2 non-null values of Dog.word:"), "\(error)")
    Script.losses = ["Cat.word", "Dog.word"]
    try store.open(JoinedV3.self, plan).close()
  }

  @Test(
    "values in the rows of other classes are lost, which somebody has to accept",
    arguments: [true, false])
  func movedDown(isLightweight: Bool) throws {
    try makeAnimals()
    Script.isLightweight = isLightweight
    let plan = ScriptedPlan<AnimalsV1, DownV2>.self
    let error = try store.refusal(DownV2.self, plan)
    #expect(error.code == .unacceptedLoss)
    #expect(error.cause.contains("drops 3 non-null values of Animal.weight:"), "\(error)")
    #expect(error.cause.contains("rows of Animal and Cat no longer have this property"), "\(error)")
    Script.losses = ["Animal.weight"]
    let container = try store.open(DownV2.self, plan)
    let dogs = try ModelContext(container).fetch(FetchDescriptor<DownV2.Dog>())
    #expect(dogs.compactMap(\.weight).sorted() == [3, 4, 5])
    #expect(try store.notes == ["drops 3 non-null values of Animal.weight"])
    #expect(try store.read(Self.weights) == ["1-", "2-", "33", "44", "55", "6-"])
  }

  /// Which row has which value in the column, which all classes share.
  private static let weights = "SELECT Z_PK || ifnull(ZWEIGHT, '-') FROM ZANIMAL ORDER BY Z_PK"

  @Test(
    "values of a property that moves down leave rows of other classes by the statement that the plan shows, also in a rebuild"
  )
  func plannedRemoval() throws {
    try makeAnimals()
    Script.losses = ["Animal.weight"]
    let plan = try PlanDefinition(ScriptedPlan<AnimalsV1, DownV2>.self)
      .migration(from: AnimalsV1.versionIdentifier)
    let change = try #require(
      plan.stages.flatMap(\.planned)
        .first { $0.reason == "removes Animal.weight from the rows of Animal and Cat" })
    #expect(change.kind == .destructive)
    #expect(
      change.statements.map(\.sql) == [
        "UPDATE ZANIMAL SET ZWEIGHT = NULL WHERE ZWEIGHT IS NOT NULL AND Z_ENT IN (1, 2)"
      ])
    // A store that Apple's frameworks made gets the column order of a new one.
    let rebuild = try store.plan(AnimalsV1.self, DownV2.self).stages.flatMap(\.statements)
    #expect(
      rebuild.contains { $0.contains("CASE WHEN Z_ENT IN (1, 2) THEN NULL ELSE ZWEIGHT END") },
      "\(rebuild)")
    let (planned, executed) = try store.statements(AnimalsV1.self, DownV2.self)
    #expect(planned == executed)
  }

  @Test(
    "values of joined properties stay in their column where no row loses them: the plan has no statement for it"
  )
  func plannedStay() throws {
    try store.make(HalfV1.self, [HalfV1.Cat("c")])
    let statements = try store.plan(HalfV1.self, WholeV2.self).stages.flatMap(\.statements)
    #expect(
      statements.allSatisfy { !$0.contains("ZWORD = NULL") && !$0.contains("THEN NULL") },
      "\(statements)")
  }

  @Test(
    "values that a move to a subclass has removed do not come back where the property moves up again"
  )
  func movedDownAndUp() throws {
    try makeAnimals()
    Script.losses = ["Animal.weight"]
    let container = try store.open(UpV3.self, DownAndUp.self)
    let animals = try ModelContext(container).fetch(FetchDescriptor<UpV3.Animal>())
    #expect(animals.compactMap(\.weight).sorted() == [3, 4, 5])
  }

  @Test(
    "values that a move to a subclass removes do not count as values of a property that becomes unique"
  )
  func movedDownAndUnique() throws {
    let animals = [AnimalsV1.Animal(), AnimalsV1.Dog(), AnimalsV1.Dog()]
    for (number, animal) in animals.enumerated() { animal.weight = max(1, number) }
    try store.make(AnimalsV1.self, animals)
    Script.losses = ["Animal.weight"]
    let container = try store.open(UniqueDownV2.self, ScriptedPlan<AnimalsV1, UniqueDownV2>.self)
    let dogs = try ModelContext(container).fetch(FetchDescriptor<UniqueDownV2.Dog>())
    #expect(dogs.compactMap(\.weight).sorted() == [1, 2])
  }

  @Test("values are carried over to each of several classes below")
  func movedDownTwice() throws {
    try makeAnimals()
    Script.losses = ["Animal.weight"]
    let container = try store.open(BothV2.self, ScriptedPlan<AnimalsV1, BothV2>.self)
    let context = ModelContext(container)
    #expect(
      try context.fetch(FetchDescriptor<BothV2.Dog>()).compactMap(\.weight).sorted() == [3, 4, 5])
    #expect(try context.fetch(FetchDescriptor<BothV2.Cat>()).compactMap(\.weight) == [6])
    #expect(try store.notes == ["drops 2 non-null values of Animal.weight"])
    // Each class has a column of its own.
    let columns = "SELECT Z_PK || ifnull(ZWEIGHT, '-') || ifnull(ZWEIGHT1, '-') FROM ZANIMAL"
    #expect(
      Set(try store.read(columns)) == ["1--", "2--", "3-3", "4-4", "5-5", "66-"])
  }

  @Test("values are noted where one of several classes below loses them later")
  func movedDownTwiceThenRemoved() throws {
    try makeAnimals()
    Script.losses = ["Animal.weight"]
    try store.open(DownV3.self, TwoStages.self).close()
    let notes = try store.notes
    #expect(
      notes == [
        "drops 1 non-null values of Animal.weight in rows of Cat",
        "drops 2 non-null values of Animal.weight",
      ], "\(notes)")
  }

  @Test("values are lost in a class that leaves the hierarchy, which somebody has to accept")
  func left() throws {
    try makeAnimals()
    let plan = ScriptedPlan<AnimalsV1, LeftV2>.self
    let error = try store.refusal(LeftV2.self, plan)
    #expect(error.code == .unacceptedLoss)
    #expect(error.cause.contains("drops 3 non-null values of Animal.weight:"), "\(error)")
    Script.losses = ["Animal.weight"]
    let container = try store.open(LeftV2.self, plan)
    let context = ModelContext(container)
    #expect(try context.fetchCount(FetchDescriptor<LeftV2.Dog>()) == 3)
    #expect(
      try context.fetch(FetchDescriptor<LeftV2.Animal>()).compactMap(\.weight).sorted()
        == [1, 2, 6])
  }

  @Test(
    "values and rows of a class that joins another hierarchy are lost, unless code inserts as many")
  func joinedHierarchy() throws {
    let plants = (1...3).map { ApartV1.Plant(height: $0) }
    try store.make(ApartV1.self, plants + [ApartV1.Thing(name: "a"), ApartV1.Thing(name: "b")])
    let plan = ScriptedPlan<ApartV1, TogetherV2>.self
    let error = try store.refusal(TogetherV2.self, plan)
    #expect(error.code == .unacceptedLoss)
    #expect(error.cause.contains("drops 3 rows of Plant:"), "\(error)")
    Script.didMigrate = { context in
      context.insert(TogetherV2.Plant(height: 1))
      context.insert(TogetherV2.Plant(height: 2))
    }
    #expect(try store.refusal(TogetherV2.self, plan).cause.contains("drops 1 rows of Plant:"))
    Script.losses = ["Plant"]
    let container = try store.open(TogetherV2.self, plan)
    let things = try ModelContext(container).fetch(FetchDescriptor<TogetherV2.Thing>())
    #expect(things.map(\.name).sorted() == ["", "", "a", "b"])
    #expect(things.compactMap { ($0 as? TogetherV2.Plant)?.height }.sorted() == [1, 2])
    #expect(try store.notes.contains("drops 1 rows of Plant"))
  }

  // MARK: Models

  enum AnimalsV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Animal.self, Dog.self, Cat.self] }

    @Model
    class Animal {
      var weight: Int?
      init() {}
    }

    @Model
    final class Dog: Animal {
      var tricks: Int = 0
      override init() { super.init() }
    }

    @Model
    final class Cat: Animal {
      var lives: Int = 0
      override init() { super.init() }
    }
  }

  enum DownV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Animal.self, Dog.self, Cat.self] }

    @Model
    class Animal {
      var name: String?
      init() {}
    }

    @Model
    final class Dog: Animal {
      var tricks: Int = 0
      var weight: Int?
      override init() { super.init() }
    }

    @Model
    final class Cat: Animal {
      var lives: Int = 0
      override init() { super.init() }
    }
  }

  enum UniqueDownV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Animal.self, Dog.self, Cat.self] }

    @Model
    class Animal {
      var name: String?
      init() {}
    }

    @Model
    final class Dog: Animal {
      var tricks: Int = 0
      @Attribute(.unique) var weight: Int?
      override init() { super.init() }
    }

    @Model
    final class Cat: Animal {
      var lives: Int = 0
      override init() { super.init() }
    }
  }

  enum UpV3: VersionedSchema {
    static let versionIdentifier = Schema.Version(3, 0, 0)
    static var models: [any PersistentModel.Type] { [Animal.self, Dog.self, Cat.self] }

    @Model
    class Animal {
      var weight: Int?
      init() {}
    }

    @Model
    final class Dog: Animal {
      var tricks: Int = 0
      override init() { super.init() }
    }

    @Model
    final class Cat: Animal {
      var lives: Int = 0
      override init() { super.init() }
    }
  }

  enum DownAndUp: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [AnimalsV1.self, DownV2.self, UpV3.self] }
    static var acceptedLosses: [String] { Script.losses }
    static var stages: [MigrationStage] {
      [
        .lightweight(fromVersion: AnimalsV1.self, toVersion: DownV2.self),
        .lightweight(fromVersion: DownV2.self, toVersion: UpV3.self),
      ]
    }
  }

  enum BothV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Animal.self, Dog.self, Cat.self] }

    @Model
    class Animal {
      var name: String?
      init() {}
    }

    @Model
    final class Dog: Animal {
      var tricks: Int = 0
      var weight: Int?
      override init() { super.init() }
    }

    @Model
    final class Cat: Animal {
      var lives: Int = 0
      var weight: Int?
      override init() { super.init() }
    }
  }

  enum LeftV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Animal.self, Dog.self, Cat.self] }

    @Model
    class Animal {
      var weight: Int?
      init() {}
    }

    @Model
    final class Dog {
      var tricks: Int = 0
      init() {}
    }

    @Model
    final class Cat: Animal {
      var lives: Int = 0
      override init() { super.init() }
    }
  }

  enum JoinedV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Animal.self, Dog.self, Cat.self] }

    @Model
    class Animal {
      var name: String?
      init() {}
    }

    @Model
    final class Dog: Animal {
      var word: String?
      init(_ word: String) {
        super.init()
        self.word = word
      }
    }

    @Model
    final class Cat: Animal {
      var word: String?
      init(_ word: String) {
        super.init()
        self.word = word
      }
    }
  }

  enum JoinedV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Animal.self, Dog.self, Cat.self] }

    @Model
    class Animal {
      var name: String?
      var word: String?
      init() {}
    }

    @Model
    final class Dog: Animal {
      var tricks: Int?
      override init() { super.init() }
    }

    @Model
    final class Cat: Animal {
      var lives: Int?
      override init() { super.init() }
    }
  }

  enum HalfV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Animal.self, Cat.self, Dog.self, Puppy.self] }

    @Model
    class Animal {
      var name: String?
      init() {}
    }

    @Model
    final class Cat: Animal {
      var word: String
      init(_ word: String) {
        self.word = word
        super.init()
      }
    }

    @Model
    class Dog: Animal {
      var word: String?
      init(_ word: String?) {
        self.word = word
        super.init()
      }
    }

    @Model
    final class Puppy: Dog {
      var age: Int?
      override init(_ word: String?) { super.init(word) }
    }
  }

  enum WholeV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Animal.self, Cat.self, Dog.self, Puppy.self] }

    @Model
    class Animal {
      var name: String?
      var word: String = "none"
      init() {}
    }

    @Model
    final class Cat: Animal {
      var lives: Int?
      override init() { super.init() }
    }

    @Model
    class Dog: Animal {
      var tricks: Int?
      override init() { super.init() }
    }

    @Model
    final class Puppy: Dog {
      var age: Int?
      override init() { super.init() }
    }
  }

  enum UniqueV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Animal.self, Cat.self, Dog.self, Puppy.self] }

    @Model
    class Animal {
      @Attribute(.unique) var name: String?
      var word: String = "none"
      init() {}
    }

    @Model
    final class Cat: Animal {
      var lives: Int?
      override init() { super.init() }
    }

    @Model
    class Dog: Animal {
      var tricks: Int?
      override init() { super.init() }
    }

    @Model
    final class Puppy: Dog {
      var age: Int?
      override init() { super.init() }
    }
  }

  enum DownV3: VersionedSchema {
    static let versionIdentifier = Schema.Version(3, 0, 0)
    static var models: [any PersistentModel.Type] { [Animal.self, Dog.self, Cat.self] }

    @Model
    class Animal {
      var name: String?
      init() {}
    }

    @Model
    final class Dog: Animal {
      var tricks: Int = 0
      var weight: Int?
      override init() { super.init() }
    }

    @Model
    final class Cat: Animal {
      var lives: Int = 0
      override init() { super.init() }
    }
  }

  enum TwoStages: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [AnimalsV1.self, BothV2.self, DownV3.self] }
    static var acceptedLosses: [String] { Script.losses }
    static var stages: [MigrationStage] {
      [
        .lightweight(fromVersion: AnimalsV1.self, toVersion: BothV2.self),
        .lightweight(fromVersion: BothV2.self, toVersion: DownV3.self),
      ]
    }
  }

  enum JoinedV3: VersionedSchema {
    static let versionIdentifier = Schema.Version(3, 0, 0)
    static var models: [any PersistentModel.Type] { [Animal.self, Dog.self, Cat.self] }

    @Model
    class Animal {
      var name: String?
      var word: Int?
      init() {}
    }

    @Model
    final class Dog: Animal {
      var tricks: Int?
      override init() { super.init() }
    }

    @Model
    final class Cat: Animal {
      var lives: Int?
      override init() { super.init() }
    }
  }

  enum ApartV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Thing.self, Plant.self] }

    @Model
    final class Thing {
      var name: String
      init(name: String) { self.name = name }
    }

    @Model
    final class Plant {
      var height: Int?
      init(height: Int) { self.height = height }
    }
  }

  enum TogetherV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Thing.self, Plant.self] }

    @Model
    class Thing {
      var name: String = ""
      init(name: String) { self.name = name }
    }

    @Model
    final class Plant: Thing {
      var height: Double?
      init(height: Double) {
        super.init(name: "")
        self.height = height
      }
    }
  }
}
