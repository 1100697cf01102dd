import Instar
import Observation
import Synchronization
import Testing

/// A model with an `id` of its own, and one without.
enum Identities {
  @Model
  final class Owned {
    var id: UUID
    var name: String
    var friend: Plain?
    @Relationship(inverse: \Plain.owners) var plains: [Plain] = []
    init(name: String) {
      id = UUID()
      self.name = name
    }
  }

  @Model
  final class Plain {
    var name: String
    var owners: [Owned] = []
    init(name: String) { self.name = name }
  }
}

@Suite("API page: PersistentModel and PersistentIdentifier")
struct ModelConformanceTests {
  typealias Owned = Identities.Owned
  typealias Plain = Identities.Plain

  private let context: ModelContext

  init() throws {
    context = ModelContext(
      try ModelContainer(
        for: Owned.self, Plain.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
    )
  }

  /// Whether `change` changes what `read` reads.
  private func isSeen(_ read: () -> Void, changing change: () throws -> Void) rethrows -> Bool {
    final class Flag: Sendable {
      let isSet = Mutex(false)
    }
    let flag = Flag()
    withObservationTracking(read) { flag.isSet.withLock { $0 = true } }
    try change()
    return flag.isSet.withLock { $0 }
  }

  @Test("a model is observable, hashable and identifiable; its metatype is sendable")
  func protocols() {
    func requireAll<T: PersistentModel & Observable & Hashable & Identifiable & SendableMetatype>(
      _ type: T.Type
    ) {}
    requireAll(Owned.self)
    requireAll(Plain.self)
    let one = Plain(name: "a")
    #expect(one == one && one != Plain(name: "a") && Set([one, one]).count == 1)
  }

  @Test("a model's own == and hash(into:) win, with and without Hashable in its inheritance clause")
  func ownEquality() {
    func areEqual<T: Hashable>(_ left: T, _ right: T) -> Bool {
      left == right && Set([left, right]).count == 1 && [left] == [right]
    }
    #expect(areEqual(Coin(value: 1), Coin(value: 1)) && Coin(value: 1) == Coin(value: 1))
    #expect(!areEqual(Coin(value: 1), Coin(value: 2)))
    #expect(areEqual(HashableCoin(value: 1), HashableCoin(value: 1)))
  }

  @Test("id defaults to persistentModelID, and a model's own id wins")
  func identity() throws {
    let (owned, plain) = (Owned(name: "a"), Plain(name: "b"))
    context.insert(owned)
    context.insert(plain)
    try context.save()
    let own: UUID = owned.id
    let default_: PersistentIdentifier = plain.id
    #expect(own == owned.id && default_ == plain.persistentModelID)
  }

  @Test("persistentModelID is codable and hashable, and names entity and store")
  func identifier() throws {
    let plain = Plain(name: "b")
    context.insert(plain)
    #expect(plain.persistentModelID.storeIdentifier == nil)
    try context.save()
    let identifier = plain.persistentModelID
    #expect(identifier.entityName == "Plain" && identifier.storeIdentifier != nil)
    let decoded = try JSONDecoder().decode(
      PersistentIdentifier.self, from: JSONEncoder().encode(identifier))
    #expect(decoded == identifier && decoded.hashValue == identifier.hashValue)
    #expect(decoded.id == identifier.id)
    #expect(context.model(for: decoded) as? Plain === plain)
  }

  @Test("modelContext, hasChanges and isDeleted follow a model's life")
  func life() throws {
    let plain = Plain(name: "b")
    #expect(plain.modelContext == nil && !plain.hasChanges && !plain.isDeleted)
    context.insert(plain)
    #expect(plain.modelContext === context && plain.hasChanges)
    try context.save()
    #expect(!plain.hasChanges)
    plain.name = "c"
    #expect(plain.hasChanges)
    context.delete(plain)
    #expect(plain.isDeleted)
    try context.save()
    #expect(plain.isDeleted && plain.modelContext == nil)
  }

  @Test("withObservationTracking sees the changes of the properties that were read, and no others")
  func observation() throws {
    let owned = Owned(name: "a")
    #expect(isSeen({ _ = owned.name }) { owned.name = "b" })
    context.insert(owned)
    try context.save()
    #expect(isSeen({ _ = owned.name }) { owned.name = "c" })
    #expect(!isSeen({ _ = owned.name }) { owned.name = "c" })
    #expect(!isSeen({ _ = owned.id }) { owned.name = "d" })
    #expect(isSeen({ _ = owned.friend }) { owned.friend = Plain(name: "f") })
  }

  @Test(
    "withObservationTracking sees a relationship that is set from its other side, and a rollback")
  func observationOfInverses() throws {
    let (owned, plain) = (Owned(name: "a"), Plain(name: "b"))
    context.insert(owned)
    context.insert(plain)
    try context.save()
    #expect(isSeen({ _ = owned.plains }) { plain.owners = [owned] })
    #expect(isSeen({ _ = owned.plains.count }) { plain.owners = [] })
    owned.name = "changed"
    #expect(isSeen({ _ = owned.name }) { context.rollback() })
    #expect(owned.name == "a")
  }

  @Test("what is read in a nested withObservationTracking is seen by both")
  func nestedObservation() {
    let owned = Owned(name: "a")
    var isSeenInside = false
    let isSeenOutside = isSeen({
      isSeenInside = isSeen({ _ = owned.name }) {}
    }) {
      owned.name = "b"
    }
    #expect(isSeenOutside && !isSeenInside)
  }

  @Test("what withObservationTracking holds is released with the models that were read")
  func releasedObservers() {
    final class Held: Sendable {}
    weak var held: Held?
    for _ in 0..<2 {
      let (owned, object) = (Owned(name: "a"), Held())
      held = object
      withObservationTracking {
        _ = owned.name
      } onChange: {
        _ = object
      }
    }
    #expect(held == nil)
  }

  @Test("a read is tracked by its own thread only")
  func observationOfThreads() async {
    await withTaskGroup(of: Bool.self) { group in
      for number in 0..<64 {
        group.addTask {
          let owned = Owned(name: "a")
          if number % 2 == 0 {
            _ = owned.name
            return true
          }
          let flag = Mutex(false)
          withObservationTracking {
            _ = owned.name
          } onChange: {
            flag.withLock { $0 = true }
          }
          owned.name = "b"
          return flag.withLock { $0 }
        }
      }
      for await isSeen in group { #expect(isSeen) }
    }
  }
}
