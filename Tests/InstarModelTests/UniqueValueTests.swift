import GRDB
import Instar
import InstarTestSupport
import Testing

@Suite("Unique values of several rows in one save")
struct UniqueValueTests {
  // MARK: Texts

  @Test(
    "texts that differ in their bytes only are different values", arguments: LinkedFormat.allCases)
  func composition(format: LinkedFormat) throws {
    func check<A: Account>(_ type: A.Type) throws {
      let container = try A.container()
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
    try check(format.account)
  }
}
