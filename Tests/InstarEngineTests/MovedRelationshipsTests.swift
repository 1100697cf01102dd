import Instar
import InstarWire
import Testing

/// Whole runs of an app's container over a stage that moves relationships from a class to its subclasses.
@Suite("Links of a relationship that moves to a subclass", .serialized)
struct MovedRelationshipsTests {
  private let store: MigratedStore

  init() throws { store = try MigratedStore() }

  /// A dog, a puppy, a cat and an animal of no subclass. Each has an owner and two toys. Dogs have a box and two clubs;
  /// another app has put the cat in one of these clubs.
  private func makeAnimals() throws {
    let owner = KennelV1.Breeder(name: "o")
    let clubs = [KennelV1.Club(name: "a"), KennelV1.Club(name: "b")]
    let animals = [
      KennelV1.Animal(name: "animal"), KennelV1.Cat(name: "cat"), KennelV1.Dog(name: "dog"),
      KennelV1.Puppy(name: "puppy"),
    ]
    for animal in animals {
      animal.owner = owner
      animal.toys = ["1", "2"].map { KennelV1.Toy(name: "\($0) of \(animal.name)") }
      guard animal is KennelV1.Dog else { continue }
      animal.box = KennelV1.Box(name: "of \(animal.name)")
      animal.clubs = clubs
    }
    try store.make(KennelV1.self, animals)
    let join = try joinTable
    try store.execute(
      """
      INSERT INTO \(join.name) (\(join.member), \(join.club))
      SELECT a.Z_PK, c.Z_PK FROM ZANIMAL AS a, ZCLUB AS c WHERE a.ZNAME = 'cat' AND c.ZNAME = 'a'
      """)
  }

  private var joinTable: (name: String, member: String, club: String) {
    get throws {
      let name = try #require(
        try store.read(
          "SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB 'Z_[0-9]*CLUBS'"
        ).first)
      let columns = try store.read(
        "SELECT name FROM pragma_table_info('\(name)') ORDER BY name GLOB '*CLUBS'")
      return (name, columns[0], columns[1])
    }
  }

  private static let losses = ["Animal.owner", "Animal.box", "Animal.toys", "Animal.clubs"]

  @Test(
    "links of a relationship that moves to a subclass stay in its rows; somebody has to accept the loss of others",
    arguments: [true, false])
  func moved(isLightweight: Bool) throws {
    try makeAnimals()
    Script.isLightweight = isLightweight
    let plan = ScriptedPlan<KennelV1, KennelV2>.self
    let error = try store.refusal(KennelV2.self, plan)
    #expect(error.code == .unacceptedLoss)
    for loss in [
      "2 links of Animal.owner", "4 links of Animal.toys", "1 links of Animal.clubs",
    ] {
      #expect(
        error.cause.contains(
          "drops \(loss): rows of Animal and Cat no longer have this property"), "\(error)")
    }
    Script.losses = Self.losses
    let context = ModelContext(try store.open(KennelV2.self, plan))
    let dogs = try context.fetch(
      FetchDescriptor<KennelV2.Dog>(sortBy: [SortDescriptor(\.name)]))
    #expect(dogs.map(\.name) == ["dog", "puppy"])
    #expect(dogs.map { $0.owner?.name } == ["o", "o"])
    #expect(dogs.map { $0.box?.name } == ["of dog", "of puppy"])
    #expect(
      dogs.map { $0.toys.map(\.name).sorted() } == [
        ["1 of dog", "2 of dog"], ["1 of puppy", "2 of puppy"],
      ])
    #expect(dogs.map { $0.clubs.map(\.name).sorted() } == [["a", "b"], ["a", "b"]])
    #expect(try context.fetchCount(FetchDescriptor<KennelV2.Animal>()) == 4)
    #expect(try context.fetchCount(FetchDescriptor<KennelV2.Toy>()) == 8)
    let clubs = try context.fetch(FetchDescriptor<KennelV2.Club>())
    let members = ["dog", "puppy"]
    #expect(clubs.map { $0.members.map(\.name).sorted() } == [members, members])
    let boxes = try context.fetch(FetchDescriptor<KennelV2.Box>())
    #expect(
      boxes.compactMap { $0.animal?.name }.sorted() == ["dog", "puppy"])
    let notes = try store.notes
    for note in [
      "drops 2 links of Animal.owner", "drops 4 links of Animal.toys",
      "drops 1 links of Animal.clubs",
    ] {
      #expect(notes.contains(note), "\(notes)")
    }
    // A context shows neither the links of other rows nor the other parts of a link.
    try requireNoOtherLinks()
  }

  private func requireNoOtherLinks() throws {
    let parts = try store.read(
      "SELECT name FROM pragma_table_info('ZANIMAL') WHERE name GLOB '*_OWNER'")
    #expect(parts.count == 1)
    #expect(
      try store.read(
        "SELECT ZNAME FROM ZANIMAL WHERE coalesce(ZOWNER, ZBOX, \(parts[0])) IS NOT NULL "
          + "ORDER BY ZNAME") == ["dog", "puppy"])
    let owner = try #require(
      try store.read(
        "SELECT name FROM pragma_table_info('ZTOY') WHERE name GLOB 'Z[0-9]*TOYS'"
      ).first)
    #expect(try store.read("SELECT count(*) FROM ZTOY WHERE \(owner) IS NOT NULL") == ["4"])
    #expect(try store.read("SELECT count(*) FROM \(try joinTable.name)") == ["4"])
  }

  @Test(
    "links are carried over to each of several subclasses that have a relationship of their own")
  func movedTwice() throws {
    try makeAnimals()
    Script.isLightweight = true
    Script.losses = Self.losses
    let context = ModelContext(
      try store.open(KennelV3.self, ScriptedPlan<KennelV1, KennelV3>.self))
    let cats = try context.fetch(FetchDescriptor<KennelV3.Cat>())
    #expect(cats.map { $0.owner?.name } == ["o"])
    #expect(cats.map { $0.toys.map(\.name).sorted() } == [["1 of cat", "2 of cat"]])
    let dogs = try context.fetch(
      FetchDescriptor<KennelV3.Dog>(sortBy: [SortDescriptor(\.name)]))
    #expect(dogs.map { $0.owner?.name } == ["o", "o"])
    #expect(
      dogs.map { $0.toys.map(\.name).sorted() } == [
        ["1 of dog", "2 of dog"], ["1 of puppy", "2 of puppy"],
      ])
    let columns = try store.read(
      "SELECT name FROM pragma_table_info('ZTOY') WHERE name GLOB 'Z[0-9]*TOYS' ORDER BY name")
    #expect(columns.count == 2)
    #expect(
      try columns.map { try store.read("SELECT count(*) FROM ZTOY WHERE \($0) IS NOT NULL")[0] }
        .sorted() == ["2", "4"])
    let notes = try store.notes
    #expect(notes.contains("drops 1 links of Animal.owner"), "\(notes)")
    #expect(notes.contains("drops 2 links of Animal.toys"), "\(notes)")
    #expect(
      notes.contains(
        "Cat.toys and Dog.toys had 8 links and have 6: "
          + "2 were of rows that no longer have the relationship"), "\(notes)")
  }

  @Test("links are counted for each stage, where one of the subclasses loses them later")
  func movedTwiceThenRemoved() throws {
    try makeAnimals()
    Script.losses = Self.losses
    let context = ModelContext(try store.open(KennelV4.self, TwoStages.self))
    let dogs = try context.fetch(
      FetchDescriptor<KennelV4.Dog>(sortBy: [SortDescriptor(\.name)]))
    #expect(dogs.map { $0.owner?.name } == ["o", "o"])
    #expect(dogs.map { $0.toys.count } == [2, 2])
    let notes = try store.notes
    #expect(
      notes.contains(
        "Dog.toys had 8 links and has 4: 4 were of rows that no longer have the relationship"),
      "\(notes)")
  }

  @Test(
    "links of a relationship that moves to a subclass end by statements that the plan shows with the move"
  )
  func statements() throws {
    try makeAnimals()
    Script.isLightweight = true
    let changes = try store.plan(KennelV1.self, KennelV2.self).stages[0].planned
    let (planned, executed) = try store.statements(KennelV1.self, KennelV2.self)
    #expect(planned == executed)
    for property in ["owner", "toys", "clubs"] {
      let move = changes.first {
        $0.reason == "removes Animal.\(property) from the rows of Animal and Cat"
      }
      #expect(
        move?.statements.contains {
          $0.comment == "ends links of rows that no longer have the relationship"
        } == true, "\(changes)")
    }
  }

  @Test(
    "a relationship that moves to a subclass needs a stage with code if it becomes to-many at the same time"
  )
  func becomesToMany() throws {
    try makeAnimals()
    Script.isLightweight = true
    let error = try store.refusal(KennelV1.self, KennelV5.self)
    #expect(error.code == .needsCustomStage)
    #expect(error.cause.contains("links of Dog.owner must be set again"), "\(error)")
  }

  // MARK: Models

  enum KennelV1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] {
      [
        Animal.self, Dog.self, Puppy.self, Cat.self, Owner.self, Breeder.self, Box.self, Toy.self,
        Club.self,
      ]
    }

    @Model
    class Animal {
      var name: String
      var owner: Owner?
      var box: Box?
      var toys: [Toy] = []
      var clubs: [Club] = []
      init(name: String) { self.name = name }
    }

    @Model
    class Dog: Animal {
      var tricks: Int = 0
      override init(name: String) { super.init(name: name) }
    }

    @Model
    final class Puppy: Dog {
      var weeks: Int = 0
      override init(name: String) { super.init(name: name) }
    }

    @Model
    final class Cat: Animal {
      var lives: Int = 0
      override init(name: String) { super.init(name: name) }
    }

    @Model
    class Owner {
      var name: String
      init(name: String) { self.name = name }
    }

    @Model
    final class Breeder: Owner {
      var licence: Int = 0
      override init(name: String) { super.init(name: name) }
    }

    @Model
    final class Box {
      var name: String
      @Relationship(inverse: \Dog.box) var animal: Dog?
      init(name: String) { self.name = name }
    }

    @Model
    final class Toy {
      var name: String
      init(name: String) { self.name = name }
    }

    @Model
    final class Club {
      var name: String
      @Relationship(inverse: \Dog.clubs) var members: [Dog] = []
      init(name: String) { self.name = name }
    }
  }

  enum KennelV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] {
      [
        Animal.self, Dog.self, Puppy.self, Cat.self, Owner.self, Breeder.self, Box.self, Toy.self,
        Club.self,
      ]
    }

    @Model
    class Animal {
      var name: String
      init(name: String) { self.name = name }
    }

    @Model
    class Dog: Animal {
      var tricks: Int = 0
      var owner: Owner?
      var box: Box?
      var toys: [Toy] = []
      var clubs: [Club] = []
      override init(name: String) { super.init(name: name) }
    }

    @Model
    final class Puppy: Dog {
      var weeks: Int = 0
      override init(name: String) { super.init(name: name) }
    }

    @Model
    final class Cat: Animal {
      var lives: Int = 0
      override init(name: String) { super.init(name: name) }
    }

    @Model
    class Owner {
      var name: String
      init(name: String) { self.name = name }
    }

    @Model
    final class Breeder: Owner {
      var licence: Int = 0
      override init(name: String) { super.init(name: name) }
    }

    @Model
    final class Box {
      var name: String
      @Relationship(inverse: \Dog.box) var animal: Dog?
      init(name: String) { self.name = name }
    }

    @Model
    final class Toy {
      var name: String
      init(name: String) { self.name = name }
    }

    @Model
    final class Club {
      var name: String
      @Relationship(inverse: \Dog.clubs) var members: [Dog] = []
      init(name: String) { self.name = name }
    }
  }

  enum KennelV3: VersionedSchema {
    static let versionIdentifier = Schema.Version(3, 0, 0)
    static var models: [any PersistentModel.Type] {
      [
        Animal.self, Dog.self, Puppy.self, Cat.self, Owner.self, Breeder.self, Box.self, Toy.self,
        Club.self,
      ]
    }

    @Model
    class Animal {
      var name: String
      init(name: String) { self.name = name }
    }

    @Model
    class Dog: Animal {
      var tricks: Int = 0
      var owner: Owner?
      var toys: [Toy] = []
      override init(name: String) { super.init(name: name) }
    }

    @Model
    final class Puppy: Dog {
      var weeks: Int = 0
      override init(name: String) { super.init(name: name) }
    }

    @Model
    final class Cat: Animal {
      var lives: Int = 0
      var owner: Owner?
      var toys: [Toy] = []
      override init(name: String) { super.init(name: name) }
    }

    @Model
    class Owner {
      var name: String
      init(name: String) { self.name = name }
    }

    @Model
    final class Breeder: Owner {
      var licence: Int = 0
      override init(name: String) { super.init(name: name) }
    }

    @Model
    final class Box {
      var name: String
      init(name: String) { self.name = name }
    }

    @Model
    final class Toy {
      var name: String
      init(name: String) { self.name = name }
    }

    @Model
    final class Club {
      var name: String
      init(name: String) { self.name = name }
    }
  }

  enum KennelV4: VersionedSchema {
    static let versionIdentifier = Schema.Version(4, 0, 0)
    static var models: [any PersistentModel.Type] {
      [
        Animal.self, Dog.self, Puppy.self, Cat.self, Owner.self, Breeder.self, Box.self, Toy.self,
        Club.self,
      ]
    }

    @Model
    class Animal {
      var name: String
      init(name: String) { self.name = name }
    }

    @Model
    class Dog: Animal {
      var tricks: Int = 0
      var owner: Owner?
      var toys: [Toy] = []
      override init(name: String) { super.init(name: name) }
    }

    @Model
    final class Puppy: Dog {
      var weeks: Int = 0
      override init(name: String) { super.init(name: name) }
    }

    @Model
    final class Cat: Animal {
      var lives: Int = 0
      override init(name: String) { super.init(name: name) }
    }

    @Model
    class Owner {
      var name: String
      init(name: String) { self.name = name }
    }

    @Model
    final class Breeder: Owner {
      var licence: Int = 0
      override init(name: String) { super.init(name: name) }
    }

    @Model
    final class Box {
      var name: String
      init(name: String) { self.name = name }
    }

    @Model
    final class Toy {
      var name: String
      init(name: String) { self.name = name }
    }

    @Model
    final class Club {
      var name: String
      init(name: String) { self.name = name }
    }
  }

  enum KennelV5: VersionedSchema {
    static let versionIdentifier = Schema.Version(5, 0, 0)
    static var models: [any PersistentModel.Type] {
      [
        Animal.self, Dog.self, Puppy.self, Cat.self, Owner.self, Breeder.self, Box.self, Toy.self,
        Club.self,
      ]
    }

    @Model
    class Animal {
      var name: String
      init(name: String) { self.name = name }
    }

    @Model
    class Dog: Animal {
      var tricks: Int = 0
      var owner: [Owner] = []
      override init(name: String) { super.init(name: name) }
    }

    @Model
    final class Puppy: Dog {
      var weeks: Int = 0
      override init(name: String) { super.init(name: name) }
    }

    @Model
    final class Cat: Animal {
      var lives: Int = 0
      override init(name: String) { super.init(name: name) }
    }

    @Model
    class Owner {
      var name: String
      init(name: String) { self.name = name }
    }

    @Model
    final class Breeder: Owner {
      var licence: Int = 0
      override init(name: String) { super.init(name: name) }
    }

    @Model
    final class Box {
      var name: String
      init(name: String) { self.name = name }
    }

    @Model
    final class Toy {
      var name: String
      init(name: String) { self.name = name }
    }

    @Model
    final class Club {
      var name: String
      init(name: String) { self.name = name }
    }
  }

  enum TwoStages: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] {
      [KennelV1.self, KennelV3.self, KennelV4.self]
    }
    static var acceptedLosses: [String] { Script.losses }
    static var stages: [MigrationStage] {
      [
        .lightweight(fromVersion: KennelV1.self, toVersion: KennelV3.self),
        .lightweight(fromVersion: KennelV3.self, toVersion: KennelV4.self),
      ]
    }
  }
}
