import Instar
import Testing

@Suite("Predicates made of predicates")
struct NestedPredicateTests {
  @Model
  final class Author {
    var name: String
    @Relationship(deleteRule: .cascade, inverse: \Book.author) var books: [Book] = []

    init(_ name: String, books: [Book]) {
      self.name = name
      self.books = books
    }
  }

  @Model
  final class Book {
    var title: String
    var pages: Int
    var author: Author?

    init(_ title: String, _ pages: Int) {
      self.title = title
      self.pages = pages
    }
  }

  private let context: ModelContext

  init() throws {
    let container = try ModelContainer(
      for: Author.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
    context = ModelContext(container)
    context.insert(Author("Ada", books: [Book("Engines", 300), Book("Notes", 20)]))
    context.insert(Author("Bo", books: [Book("Notes", 90)]))
  }

  /// What a predicate finds among unsaved models, by Foundation, and then in the store, by SQL.
  private func names(_ predicate: Predicate<Author>) throws -> [String] {
    let fetch = FetchDescriptor(predicate: predicate, sortBy: [SortDescriptor(\.name)])
    let pending = try context.fetch(fetch).map(\.name)
    try context.save()
    #expect(try ModelContext(context.container).fetch(fetch).map(\.name) == pending)
    return pending
  }

  private func titles(_ predicate: Predicate<Book>) throws -> [String] {
    let fetch = FetchDescriptor(predicate: predicate, sortBy: [SortDescriptor(\.title)])
    let pending = try context.fetch(fetch).map(\.title)
    try context.save()
    #expect(try ModelContext(context.container).fetch(fetch).map(\.title) == pending)
    return pending
  }

  @Test("predicates can be joined by && and ||, and negated")
  func logic() throws {
    let isLong = #Predicate<Book> { $0.pages > 100 }
    let isNotes = #Predicate<Book> { $0.title == "Notes" }
    #expect(try titles(#Predicate { isLong.evaluate($0) || isNotes.evaluate($0) }).count == 3)
    #expect(try titles(#Predicate { isLong.evaluate($0) && isNotes.evaluate($0) }).isEmpty)
    #expect(try titles(#Predicate<Book> { !isNotes.evaluate($0) }) == ["Engines"])
    #expect(
      try titles(#Predicate<Book> { book in isNotes.evaluate(book) && book.pages < 50 })
        == ["Notes"])
  }

  @Test("any number of predicates can be put together one by one")
  func reduced() throws {
    let bounds = [10, 50, 200]
    let all = bounds.map { bound in #Predicate<Book> { $0.pages > bound } }
      .reduce(#Predicate<Book> { _ in true }) { current, next in
        #Predicate { current.evaluate($0) && next.evaluate($0) }
      }
    #expect(try titles(all) == ["Engines"])
    let list = [#Predicate<Book> { $0.pages < 50 }, #Predicate<Book> { $0.title == "Notes" }]
    #expect(try titles(#Predicate { list[0].evaluate($0) && list[1].evaluate($0) }) == ["Notes"])
  }

  /// Predicates that are put together one by one.
  private func chain(
    _ count: Int, _ start: Predicate<Book>,
    _ join: (Predicate<Book>, Predicate<Book>) -> Predicate<Book>
  ) -> Predicate<Book> {
    (1...count).map { bound in #Predicate<Book> { $0.pages == bound } }.reduce(start, join)
  }

  @Test("predicates can be joined to a long chain, by && or ||")
  func longChain() throws {
    let either = chain(200, #Predicate { _ in false }) { current, next in
      #Predicate { current.evaluate($0) || next.evaluate($0) }
    }
    #expect(try titles(either) == ["Notes", "Notes"])
    let neither = chain(200, #Predicate { _ in true }) { current, next in
      #Predicate { current.evaluate($0) && !next.evaluate($0) }
    }
    #expect(try titles(neither) == ["Engines"])
  }

  @Test(
    "predicates that are nested deeper than Instar or SQLite can read are an error of the fetch")
  func tooDeep() throws {
    try context.save()
    func expectRefused(_ predicate: Predicate<Book>, _ limit: String) {
      let error = #expect(throws: SwiftDataError.self) {
        try context.fetch(FetchDescriptor(predicate: predicate))
      }
      #expect(error == .unsupportedPredicate)
      #expect(error?.cause?.cause == "the predicate nests its conditions deeper than \(limit)")
    }
    expectRefused(
      chain(3_000, #Predicate { _ in true }) { current, next in
        #Predicate { current.evaluate($0) && !next.evaluate($0) }
      }, "1000 levels")
    let isLong = #Predicate<Book> { $0.pages > 100 }
    expectRefused(
      chain(80, #Predicate { _ in true }) { current, next in
        #Predicate { current.evaluate($0) && isLong.evaluate($0) || next.evaluate($0) }
      }, "SQLite accepts")
  }

  @Test("many predicates can be joined in one expression, which the compiler checks one by one")
  func many() throws {
    let (a, b, c, d) = (
      #Predicate<Book> { $0.pages > 10 }, #Predicate<Book> { $0.pages > 15 },
      #Predicate<Book> { $0.pages < 200 }, #Predicate<Book> { $0.pages < 250 }
    )
    let (e, f) = (#Predicate<Book> { $0.title == "Notes" }, #Predicate<Book> { $0.author != nil })
    #expect(
      try titles(
        #Predicate {
          a.evaluate($0) && b.evaluate($0) && c.evaluate($0) && d.evaluate($0) && e.evaluate($0)
            && f.evaluate($0) && !($0.pages == 90 || a.evaluate($0) && $0.pages == 91)
            && ($0.title.contains("ot") || e.evaluate($0)) && $0.pages != 17 && b.evaluate($0)
        }) == ["Notes"])
    #expect(
      try titles(
        #Predicate<Book> { book in
          e.evaluate(book) && book.pages < 50 || f.evaluate(book) && book.title == "Engines"
            || !a.evaluate(book) || !b.evaluate(book) || !f.evaluate(book)
        }) == ["Engines", "Notes"])
  }

  @Test("a predicate can contain expressions of any value")
  func expressions() throws {
    let length = #Expression<Book, Int> { $0.title.count }
    let half = #Expression<Book, Int> { $0.pages / 2 }
    #expect(try titles(#Predicate<Book> { length.evaluate($0) == 7 }) == ["Engines"])
    #expect(
      try titles(#Predicate<Book> { half.evaluate($0) < 40 && length.evaluate($0) < 6 })
        == ["Notes"])
    #expect(
      try names(
        #Predicate { author in author.books.contains { half.evaluate($0) == 150 } }) == ["Ada"])
  }

  @Test(
    "a predicate can contain others with two and three inputs: rows, their values and captured ones"
  )
  func severalInputs() throws {
    let (limit, word) = (150, "otes")
    let isLonger = #Predicate<Book, Int> { $0.pages > $1 }
    let isWithin = #Predicate<Book, Int, Int> { $0.pages >= $1 && $0.pages <= $2 }
    let excess = #Expression<Book, Int, Int> { $0.pages - $1 }
    let mean = #Expression<Int, Int, Int, Int> { ($0 + $1) / $2 }
    #expect(try titles(#Predicate<Book> { isLonger.evaluate($0, limit) }) == ["Engines"])
    #expect(try titles(#Predicate<Book> { isWithin.evaluate($0, 20, limit - 60) }).count == 2)
    #expect(
      try titles(
        #Predicate<Book> { excess.evaluate($0, 15) == 5 || excess.evaluate($0, limit) > 0 })
        == ["Engines", "Notes"])
    #expect(
      try titles(
        #Predicate<Book> {
          mean.evaluate($0.pages, $0.title.count, 5) == 19 && $0.title.contains(word)
        })
        == ["Notes"])
    // The inner call binds the same variables again.
    #expect(
      try titles(
        #Predicate<Book> { mean.evaluate(mean.evaluate($0.pages, 10, 2), $0.pages, 1) == 455 })
        == ["Engines"])
    #expect(
      try names(
        #Predicate { author in
          author.books.contains { isLonger.evaluate($0, author.name.count + 100) }
        })
        == ["Ada"])
  }

  @Test("a predicate can contain others with two inputs of which one is another model")
  func severalModels() throws {
    let isLongForItsAuthor = #Predicate<Book, Author> { book, author in
      book.pages > author.name.count * 10 && author.name != "Bo"
    }
    let length = #Expression<Author, Book, Int> { $0.name.count + $1.title.count }
    #expect(
      try names(
        #Predicate { author in author.books.contains { isLongForItsAuthor.evaluate($0, author) } })
        == ["Ada"])
    #expect(
      try names(#Predicate { author in author.books.contains { length.evaluate(author, $0) == 7 } })
        == ["Bo"])
  }

  @Test("a predicate can contain predicates of related models, in either direction")
  func related() throws {
    let minimum = 100
    let isLong = #Predicate<Book> { $0.pages >= minimum }
    #expect(
      try names(#Predicate { author in author.books.contains { isLong.evaluate($0) } }) == ["Ada"])
    #expect(
      try names(#Predicate { author in author.books.allSatisfy { !isLong.evaluate($0) } })
        == ["Bo"])
    let isAda = #Predicate<Author> { $0.name == "Ada" }
    let isByAda = #Predicate<Book> { book in
      if let author = book.author { isAda.evaluate(author) } else { false }
    }
    #expect(try titles(#Predicate { isByAda.evaluate($0) && isLong.evaluate($0) }) == ["Engines"])
  }

  @Test("generic code can combine predicates of a model of which it knows only a protocol")
  func generic() throws {
    func both<Model: PersistentModel>(
      _ one: Predicate<Model>, _ other: Predicate<Model>
    ) -> Predicate<Model> {
      #Predicate { one.evaluate($0) && other.evaluate($0) }
    }
    #expect(
      try titles(both(#Predicate { $0.pages > 50 }, #Predicate { $0.title == "Notes" }))
        == ["Notes"])
  }

  @Test("a fetch fails with the reason if its inner predicate depends on the row")
  func dependent() throws {
    let list = [#Predicate<Book> { $0.pages < 50 }, #Predicate<Book> { _ in true }]
    try context.save()
    let error = #expect(throws: SwiftDataError.self) {
      try ModelContext(context.container).fetch(
        FetchDescriptor(predicate: #Predicate<Book> { list[$0.pages % 2].evaluate($0) }))
    }
    #expect(error == .unsupportedPredicate)
    #expect(error?.cause?.cause.contains("the inner predicate depends on the row") == true)
    let rules = [#Expression<Book, Int, Int> { $0.pages + $1 }]
    let other = #expect(throws: SwiftDataError.self) {
      try ModelContext(context.container).fetch(
        FetchDescriptor(predicate: #Predicate<Book> { rules[$0.pages % 1].evaluate($0, 2) == 3 }))
    }
    #expect(other?.cause?.cause.contains("the inner predicate depends on the row") == true)
  }

  @Test("a #Predicate of other values than models is Foundation's own")
  func otherValues() throws {
    #expect(try #Predicate<Int> { $0 > 3 }.evaluate(4))
    #expect(try #Predicate<String, Int> { $0.count == $1 }.evaluate("ab", 2))
  }

  @Test("a predicate can be printed, also one of many conditions")
  func printed() {
    let short = #Predicate<Catalog.Item> { $0.uid == 1 }
    #expect("\(short)".contains("Predicate<"))
    let long = #Predicate<Catalog.Item> { $0.uid == 1 || $0.uid == 2 || $0.uid == 3 || $0.uid == 4 }
    #expect("\(long)".hasPrefix("Predicate<"))
  }
}
