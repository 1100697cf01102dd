import Instar
import InstarTestSupport
import Synchronization
import Testing

@testable import InstarModel

/// A model as `instarctl plugin build` expands it: without an initializer for rows.
private final class Leaf {
  static let released = Atomic<Int>(0)

  var title: String {
    @storageRestrictions(accesses: _$storage, initializes: _title) init(initialValue) {
      _$storage.initialize(slot: 0, to: initialValue)
      _title = PersistedProperty()
    }
    get { _$storage.value(at: 0) }
    set { _$storage.setValue(newValue, at: 0, of: self) }
  }

  init(title: String) { self.title = title }

  deinit { Self.released.add(1, ordering: .relaxed) }

  private var _$storage: ModelStorage = ModelStorage(Leaf._modelDescriptor)
  var _modelStorage: ModelStorage { _$storage }
  static let _modelDescriptor = ModelDescriptor(Leaf.self, name: "Leaf")
  static var schemaMetadata: [Schema.PropertyMetadata] {
    [Schema.PropertyMetadata("title", \Leaf.title)]
  }
  private var _title: PersistedProperty
}
extension Leaf: PersistentModel {}

@propertyWrapper
private struct Doubled {
  var wrappedValue: Int
  init(wrappedValue: Int) { self.wrappedValue = 2 * wrappedValue }
}

private class Drawer {
  var label = "drawer"
}

private class Cabinet {}

/// Only one test uses it, because the count is that of the process.
private enum Nursery {
  @Model final class Seedling {
    static let initialNames = Atomic<Int>(0)

    var name: String = Seedling.initialName()
    init() {}

    static func initialName() -> String {
      initialNames.add(1, ordering: .relaxed)
      return "seedling"
    }
  }
}

private enum Herbarium {
  @Model final class Flower {
    var name: String = "flower"
    @Relationship(inverse: \Herb.flower) var herbs: [Herb] = []
    init() {}
  }

  @Model final class Herb {
    var name: String
    var flower: Flower?
    @Transient var looks = 3
    @Transient private(set) var places = ["garden", "a place whose name is long"]
    init(name: String) { self.name = name }
  }

  @Model final class Grass {
    var name: String
    lazy var letters = name.count
    init(name: String) { self.name = name }
  }

  @Model final class Moss {
    var name: String
    @Transient @Doubled var looks = 3
    init(name: String) { self.name = name }
  }

  @Model final class Fern: Drawer {
    var name: String
    init(name: String) { self.name = name }
  }

  @Model final class Reed: Cabinet {
    var name: String
    init(name: String) { self.name = name }
  }

  @Model class Tree {
    var name: String
    init(name: String) { self.name = name }
  }

  @Model final class Oak: Tree {
    var age: Int = 100
    @Transient var looks = 3
    override init(name: String) { super.init(name: name) }
  }

  static let models: [any PersistentModel.Type] = [
    Flower.self, Herb.self, Grass.self, Moss.self, Fern.self, Reed.self, Tree.self, Oak.self,
  ]
}

@Suite("The object of a row that is made without an initializer")
struct RowObjectTests {
  @Test("an object is of its class, reads and writes its row, and is released once")
  func life() throws {
    let folder = try TemporaryFolder()
    let container = try ModelContainer(
      for: Leaf.self,
      configurations: ModelConfiguration(url: .init(fileURLWithPath: folder.path("leaves.store"))))
    do {
      let context = ModelContext(container)
      for number in 0..<100 { context.insert(Leaf(title: "leaf \(number)")) }
      try context.save()
    }
    #expect(Leaf.released.load(ordering: .relaxed) == 100)
    do {
      let context = ModelContext(container)
      let leaves = try context.fetch(FetchDescriptor<Leaf>(sortBy: [SortDescriptor(\.title)]))
      #expect(leaves.map(\.title).prefix(2) == ["leaf 0", "leaf 1"])
      #expect((leaves[0] as Any) is Leaf && "\(leaves[0])".hasSuffix("Leaf"))
      leaves[0].title = "a leaf"
      try context.save()
    }
    #expect(Leaf.released.load(ordering: .relaxed) == 200)
    let context = ModelContext(container)
    let isNew = #Predicate<Leaf> { $0.title == "a leaf" }
    #expect(try context.fetchCount(FetchDescriptor(predicate: isNew)) == 1)
  }

  @Test(
    "an object may be of a class that has nothing in memory but its storage",
    arguments: [
      (Leaf.self, true), (Herbarium.Flower.self, true), (Herbarium.Tree.self, true),
      (Herbarium.Herb.self, false), (Herbarium.Grass.self, false), (Herbarium.Moss.self, false),
      (Herbarium.Fern.self, false), (Herbarium.Reed.self, false), (Herbarium.Oak.self, false),
    ] as [(any PersistentModel.Type, Bool)])
  func storageOnly(type: any PersistentModel.Type, isStorageOnly: Bool) {
    #expect(type._modelDescriptor.isStorageOnly == isStorageOnly)
  }

  @Test("an object is made without the initial values of its class")
  func initialValues() throws {
    let folder = try TemporaryFolder()
    let container = try ModelContainer(
      for: Nursery.Seedling.self,
      configurations: ModelConfiguration(
        url: .init(fileURLWithPath: folder.path("nursery.store"))))
    let context = ModelContext(container)
    for _ in 0..<10 { context.insert(Nursery.Seedling()) }
    try context.save()
    let before = Nursery.Seedling.initialNames.load(ordering: .relaxed)
    let seedlings = try ModelContext(container).fetch(FetchDescriptor<Nursery.Seedling>())
    #expect(seedlings.map(\.name) == Array(repeating: "seedling", count: 10))
    #expect(Nursery.Seedling.initialNames.load(ordering: .relaxed) == before)
  }

  @Test("an object is made with the initial values of all properties outside of its storage")
  func otherProperties() throws {
    let folder = try TemporaryFolder()
    let container = try herbarium(folder)
    do {
      let context = ModelContext(container)
      let flower = Herbarium.Flower()
      context.insert(flower)
      let herb = Herbarium.Herb(name: "sage")
      herb.flower = flower
      herb.looks = 5
      context.insert(Herbarium.Grass(name: "rye"))
      context.insert(Herbarium.Moss(name: "peat moss"))
      context.insert(Herbarium.Fern(name: "bracken"))
      context.insert(Herbarium.Reed(name: "rush"))
      context.insert(Herbarium.Tree(name: "elm"))
      context.insert(Herbarium.Oak(name: "oak"))
      try context.save()
    }
    let context = ModelContext(container)
    func only<Model: PersistentModel>(_ type: Model.Type) throws -> Model {
      try #require(try context.fetch(FetchDescriptor<Model>()).first)
    }
    let herb = try #require(try only(Herbarium.Flower.self).herbs.first)
    #expect(herb.name == "sage" && herb.looks == 3)
    #expect(herb.places == ["garden", "a place whose name is long"])
    #expect(try only(Herbarium.Grass.self).letters == 3)
    #expect(try only(Herbarium.Moss.self).looks == 6)
    #expect(try only(Herbarium.Fern.self).label == "drawer")
    #expect(try only(Herbarium.Reed.self).name == "rush")
    let oak = try only(Herbarium.Oak.self)
    #expect(oak.name == "oak" && oak.age == 100 && oak.looks == 3)
    let trees = try context.fetch(
      FetchDescriptor<Herbarium.Tree>(sortBy: [SortDescriptor(\.name)]))
    #expect(trees.map(\.name) == ["elm", "oak"])
    #expect(!(trees[0] is Herbarium.Oak) && trees[1] === oak)
  }

  private func herbarium(_ folder: TemporaryFolder) throws -> ModelContainer {
    try ModelContainer(
      for: Schema(Herbarium.models),
      configurations: ModelConfiguration(
        url: .init(fileURLWithPath: folder.path("herbarium.store"))))
  }
}
