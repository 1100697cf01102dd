import Instar
import InstarTestSupport
import Testing

@testable import InstarModel

private enum Cookware {
  @Model final class Pot {
    var name: String
    var saucer: Saucer?
    // Lost in this order.
    @Relationship(inverse: \Spoon.pot) var spoons: [Spoon] = []
    @Relationship(inverse: \Lid.pot) var lids: [Lid] = []
    @Transient var atEnd: () -> Void = {}
    init(name: String) { self.name = name }
    deinit { atEnd() }
  }

  @Model final class Saucer {
    var name: String
    @Transient var atEnd: () -> Void = {}
    init(name: String) { self.name = name }
    deinit { atEnd() }
  }

  @Model final class Spoon {
    var name: String
    var pot: Pot?
    init(name: String) { self.name = name }
  }

  @Model final class Lid {
    var name: String
    var pot: Pot?
    @Transient var atEnd: () -> Void = {}
    @Transient var lookAround: (Lid) -> Void = { _ in }
    init(name: String) { self.name = name }
    deinit {
      atEnd()
      lookAround(self)
    }
  }

  @Model final class Handle {
    var pot: Pot
    @Transient var atEnd: (Handle) -> Void = { _ in }
    init(pot: Pot) { self.pot = pot }
    deinit { atEnd(self) }
  }

  static let models: [any PersistentModel.Type] = [
    Pot.self, Saucer.self, Spoon.self, Lid.self, Handle.self,
  ]

  /// Lets a pot have a spoon for a while, so that only the context retains it.
  static func holdPot(
    in context: ModelContext, _ atEnd: @escaping () -> Void
  ) throws {
    let other = try pot("other", in: context)
    other.atEnd = atEnd
    let spoon = try #require(try context.fetch(FetchDescriptor<Spoon>()).first)
    let own = spoon.pot
    spoon.pot = other
    spoon.pot = own
  }

  static func pot(_ name: String, in context: ModelContext) throws -> Pot {
    let hasName = #Predicate<Pot> { $0.name == name }
    return try #require(try context.fetch(FetchDescriptor(predicate: hasName)).first)
  }
}

@Suite("The deinit of a model that only another model retained")
struct DeinitTests {
  @Test("a deinit may change an attribute of the model that loses it")
  func change() throws {
    let folder = try TemporaryFolder()
    let container = try cookware(folder)
    var context: ModelContext? = ModelContext(container)
    let pot = try #require(try context?.fetch(FetchDescriptor<Cookware.Pot>()).first)
    pot.saucer?.atEnd = { [unowned pot] in pot.name = "pot without a saucer" }
    context = nil
    #expect(pot.name == "pot without a saucer" && pot.saucer == nil)
  }

  @Test(
    "a deinit may read a relationship of the model that loses it",
    arguments: [
      { context in context.rollback() },
      { context in
        let other = ModelContext(context.container)
        other.insert(Cookware.Saucer(name: "another saucer"))
        try other.save()
        _ = try context.fetch(FetchDescriptor<Cookware.Saucer>())
      },
    ] as [@Sendable (ModelContext) throws -> Void])
  func read(lose: @Sendable (ModelContext) throws -> Void) throws {
    let folder = try TemporaryFolder()
    let context = ModelContext(try cookware(folder))
    let pot = try #require(try context.fetch(FetchDescriptor<Cookware.Pot>()).first)
    var found: [Cookware.Spoon] = []
    #expect(pot.spoons.map(\.name) == ["spoon"])
    pot.lids.first?.atEnd = { [unowned pot] in found = pot.spoons }
    try lose(context)
    #expect(found.map(\.name) == ["spoon"])
    found.first?.name = "ladle"
    try context.save()
    let isChanged = #Predicate<Cookware.Spoon> { $0.name == "ladle" }
    #expect(try context.fetchCount(FetchDescriptor(predicate: isChanged)) == 1)
  }

  @Test(
    "a deinit may change other models when a save or a rollback forgets its model",
    arguments: [
      { context, atEnd in
        let saucer = Cookware.Saucer(name: "new")
        saucer.atEnd = atEnd
        context.insert(saucer)
        try context.save()
      },
      { context, atEnd in
        let lid = try #require(try context.fetch(FetchDescriptor<Cookware.Lid>()).first)
        lid.atEnd = atEnd
        lid.name = "changed"
        try context.save()
      },
      { context, atEnd in
        let lid = try #require(try context.fetch(FetchDescriptor<Cookware.Lid>()).first)
        lid.atEnd = atEnd
        context.delete(lid)
        try context.save()
      },
      { context, atEnd in
        // Only the other side of a relationship of this pot was changed.
        try Cookware.holdPot(in: context, atEnd)
        try context.save()
      },
      { context, atEnd in
        try Cookware.holdPot(in: context, atEnd)
        context.rollback()
      },
      { context, atEnd in
        // Only the array retains the lid, and is read again because another context saves.
        let pot = try Cookware.pot("pot", in: context)
        pot.lids.first?.atEnd = atEnd
        pot.lids += [Cookware.Lid(name: "second")]
        let other = ModelContext(context.container)
        other.insert(Cookware.Saucer(name: "another saucer"))
        try other.save()
        try context.save()
      },
    ] as [@Sendable (ModelContext, @escaping () -> Void) throws -> Void])
  func changeOthers(forget: @Sendable (ModelContext, @escaping () -> Void) throws -> Void) throws {
    let folder = try TemporaryFolder()
    let container = try cookware(folder)
    let filling = ModelContext(container)
    filling.insert(Cookware.Pot(name: "other"))
    try filling.save()
    let context = ModelContext(container)
    let pot = try Cookware.pot("pot", in: context)
    let spoon = try #require(try context.fetch(FetchDescriptor<Cookware.Spoon>()).first)
    var count = 0
    try forget(context) { [unowned pot, unowned spoon] in
      count += 1
      pot.name = "changed"
      spoon.pot = nil
    }
    #expect(count == 1)
    #expect(
      Set(context.changedModelsArray.map { ObjectIdentifier($0) }) == [
        ObjectIdentifier(pot), ObjectIdentifier(spoon),
      ])
    try context.save()
    let fresh = ModelContext(container)
    #expect(try Cookware.pot("changed", in: fresh).spoons.isEmpty)
  }

  @Test(
    "a deinit finds another object of its model's row in the relationships of others, never the model itself"
  )
  func otherObject() throws {
    let folder = try TemporaryFolder()
    let context = ModelContext(try cookware(folder))
    var found: [Cookware.Lid] = []
    var isItself: Bool?
    do {
      let lid = try #require(try context.fetch(FetchDescriptor<Cookware.Lid>()).first)
      lid.lookAround = { lid in
        found = lid.pot?.lids ?? []
        isItself = found.contains { $0 === lid }
      }
    }
    #expect(isItself == false && found.map(\.name) == ["lid"])
    found.first?.name = "cover"
    try context.save()
    let isChanged = #Predicate<Cookware.Lid> { $0.name == "cover" }
    #expect(try context.fetch(FetchDescriptor(predicate: isChanged)) == found)
  }

  @Test(
    "a deinit may read a required relationship after the context is gone: the save of another one succeeds"
  )
  func requiredRelationship() throws {
    let folder = try TemporaryFolder()
    let container = try cookware(folder)
    var context: ModelContext? = ModelContext(container)
    var names: [String] = []
    do {
      let handle = Cookware.Handle(pot: try Cookware.pot("pot", in: #require(context)))
      context?.insert(handle)
      try context?.save()
      handle.atEnd = { names.append($0.pot.name) }
      withExtendedLifetime(handle) { context = nil }
    }
    #expect(names == [""])
    let other = ModelContext(container)
    other.insert(Cookware.Saucer(name: "another saucer"))
    try other.save()
  }

  /// A container with a pot, its saucer, a spoon and a lid.
  private func cookware(_ folder: TemporaryFolder) throws -> ModelContainer {
    let container = try ModelContainer(
      for: Schema(Cookware.models),
      configurations: ModelConfiguration(
        url: .init(fileURLWithPath: folder.path("cookware.store"))))
    let context = ModelContext(container)
    let pot = Cookware.Pot(name: "pot")
    context.insert(pot)
    pot.saucer = Cookware.Saucer(name: "saucer")
    pot.spoons = [Cookware.Spoon(name: "spoon")]
    pot.lids = [Cookware.Lid(name: "lid")]
    try context.save()
    return container
  }
}
