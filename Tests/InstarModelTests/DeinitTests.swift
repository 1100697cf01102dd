import Instar
import InstarTestSupport
import Testing

@testable import InstarModel

private enum Cookware {
  @Model final class Pot {
    var name: String
    var saucer: Saucer?
    init(name: String) { self.name = name }
  }

  @Model final class Saucer {
    var name: String
    @Transient var atEnd: () -> Void = {}
    init(name: String) { self.name = name }
    deinit { atEnd() }
  }

  static let models: [any PersistentModel.Type] = [Pot.self, Saucer.self]
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

  /// A container with a pot and its saucer.
  private func cookware(_ folder: TemporaryFolder) throws -> ModelContainer {
    let container = try ModelContainer(
      for: Schema(Cookware.models),
      configurations: ModelConfiguration(
        url: .init(fileURLWithPath: folder.path("cookware.store"))))
    let context = ModelContext(container)
    let pot = Cookware.Pot(name: "pot")
    context.insert(pot)
    pot.saucer = Cookware.Saucer(name: "saucer")
    try context.save()
    return container
  }
}
