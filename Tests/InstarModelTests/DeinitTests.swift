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
    init(name: String) { self.name = name }
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
    init(name: String) { self.name = name }
    deinit { atEnd() }
  }

  static let models: [any PersistentModel.Type] = [Pot.self, Saucer.self, Spoon.self, Lid.self]
}

@Suite("The deinit of a model that only another model retained")
struct DeinitTests {
  @Test("may change an attribute of the model that loses it")
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
    "may read a relationship of the model that loses it",
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
