import Instar
import InstarTestSupport
import Testing

@Suite("Unique texts of several models in one save")
struct UniqueValueTests {
  @Test(
    "texts that differ in their bytes only are different values", arguments: LinkedFormat.allCases)
  func composition(format: LinkedFormat) throws {
    func check<A: UniqueTexts>(_ type: A.Type) throws {
      let container = try ModelContainer(
        for: Schema([A.self]), configurations: ModelConfiguration(isStoredInMemoryOnly: true))
      let context = ModelContext(container)
      context.insert(A("e\u{301}", "1", size: 1))
      context.insert(A("\u{e9}", "2", size: 2))
      try context.save()
      #expect(try ModelContext(container).all(A.self).map(\.size).sorted() == [1, 2])
      let first = try #require(try context.all(A.self).first { $0.size == 1 })
      first.login = "e\u{301}"
      try context.save()
      first.login = "\u{e9}"
      #expect(context.hasChanges)
      try context.save()
      let logins = try ModelContext(container).all(A.self).map { Array($0.login.utf8) }
      #expect(logins.contains([0xC3, 0xA9]))
    }
    switch format {
    case .coreData: try check(CoreDataTexts.self)
    case .plain: try check(PlainTexts.self)
    }
  }
}

private protocol UniqueTexts: PersistentModel {
  var login: String { get set }
  var size: Int { get set }
  init(_ email: String, _ login: String, size: Int)
}

@Model
private final class CoreDataTexts: UniqueTexts {
  @Attribute(.unique) var email: String
  @Attribute(.unique) var login: String
  var size: Int
  init(_ email: String, _ login: String, size: Int) {
    self.email = email
    self.login = login
    self.size = size
  }
}

@Table("unique_texts")
@Model
private final class PlainTexts: UniqueTexts {
  @Attribute(.unique) var email: String
  @Attribute(.unique) var login: String
  var size: Int
  init(_ email: String, _ login: String, size: Int) {
    self.email = email
    self.login = login
    self.size = size
  }
}
