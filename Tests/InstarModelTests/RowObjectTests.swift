import Instar
import InstarTestSupport
import Synchronization
import Testing

/// A model as `instarctl plugin build` expands it: the objects of rows are made without an initializer.
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
extension Leaf: _StorageOnlyModel {}

@Suite("The object of a row that is made without an initializer")
struct RowObjectTests {
  @Test("is of its class, reads and writes its row, and is released once")
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
}
