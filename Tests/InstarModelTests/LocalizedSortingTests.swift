import Instar
import Testing

@Suite("Sorting text as people expect it")
struct LocalizedSortingTests {
  @Model
  final class Page {
    var title: String
    var subtitle: String?
    var number: Int

    init(title: String, subtitle: String? = nil, number: Int = 0) {
      self.title = title
      self.subtitle = subtitle
      self.number = number
    }
  }

  private let context: ModelContext

  init() throws {
    context = ModelContext(
      try ModelContainer(
        for: Page.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true)))
    for title in ["page 10", "Page 2", "zebra", "äther", "page 1", "Zoo"] {
      context.insert(Page(title: title))
    }
    try context.save()
  }

  private func titles(_ order: [SortDescriptor<Page>], limit: Int? = nil) throws -> [String] {
    var descriptor = FetchDescriptor(sortBy: order)
    descriptor.fetchLimit = limit
    return try context.fetch(descriptor).map(\.title)
  }

  @Test("localizedStandard goes by the locale, and by the values of numbers")
  func standard() throws {
    let order: [SortDescriptor<Page>] = [SortDescriptor(\.title, comparator: .localizedStandard)]
    let expected = ["äther", "page 1", "Page 2", "page 10", "zebra", "Zoo"]
    #expect(try titles(order) == expected)
    #expect(try titles(order, limit: 3) == Array(expected.prefix(3)))
    #expect(
      try titles([SortDescriptor(\.title, comparator: .localizedStandard, order: .reverse)])
        == expected.reversed())
    context.insert(Page(title: "page 3"))
    #expect(try titles(order)[3] == "page 3")
    context.rollback()
  }

  @Test("localized goes by the locale, lexical by Unicode")
  func others() throws {
    #expect(
      try titles([SortDescriptor(\Page.title, comparator: .localized)])
        == ["äther", "page 1", "page 10", "Page 2", "zebra", "Zoo"])
    #expect(
      try titles([SortDescriptor(\Page.title, comparator: .lexical)])
        == ["Page 2", "Zoo", "page 1", "page 10", "zebra", "äther"])
  }

  @Test("models without a text come first, and other descriptors decide about equal ones")
  func missing() throws {
    for (number, subtitle) in [nil, "b 10", "b 9", nil, "b 9"].enumerated() {
      context.insert(Page(title: "t", subtitle: subtitle, number: number))
    }
    try context.save()
    let pages = try context.fetch(
      FetchDescriptor<Page>(
        predicate: #Predicate { $0.title == "t" },
        sortBy: [
          SortDescriptor(\.subtitle, comparator: .localizedStandard),
          SortDescriptor(\.number, order: .reverse),
        ]))
    #expect(pages.map(\.number) == [3, 0, 4, 2, 1])
  }

  @Test("arrays are sorted by the same descriptors")
  func arrays() throws {
    let pages = ["b10", "b9"].map { Page(title: $0) }
    let order = SortDescriptor(\Page.title, comparator: .localizedStandard)
    #expect(pages.sorted(using: order).map(\.title) == ["b9", "b10"])
    #expect(order == SortDescriptor(\Page.title, comparator: .localizedStandard))
    #expect(order != SortDescriptor(\Page.title, comparator: .localized))
  }
}
