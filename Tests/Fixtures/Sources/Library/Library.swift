// swift-format-ignore-file
import Instar

struct LibrarySchemaV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static let models: [any PersistentModel.Type] = [Book.self, Author.self, Loan.self, Reader.self]

  @Model final class Book {
    @Attribute(.unique) var isbn: String
    var title: String
    @Relationship(inverse: \Author.books) var authors: [Author] = []
    @Relationship(deleteRule: .cascade, inverse: \Loan.book) var loans: [Loan] = []
    var sequel: Book?
    @Relationship(inverse: \Book.sequel) var prequel: Book?

    init(isbn: String, title: String, authors: [Author] = []) {
      self.isbn = isbn
      self.title = title
      self.authors = authors
    }
  }

  @Model final class Author {
    var name: String
    var books: [Book] = []
    init(name: String) { self.name = name }
  }

  /// Which reader has which book: a relationship with attributes of its own.
  @Model final class Loan {
    var due: Date
    var book: Book
    var reader: Reader
    init(book: Book, reader: Reader, due: Date = Date(timeIntervalSince1970: 86_400)) {
      self.due = due
      self.book = book
      self.reader = reader
    }
  }

  @Model final class Reader {
    @Attribute(.unique)
    @available(swift, introduced: 5.9)
    var number: Int
    var name: String { "reader \(count)" }
    @Relationship(
      deleteRule: .deny,
      minimumModelCount: 0,
      maximumModelCount: 3,
      inverse: \Loan.reader
    )
    var loans: [Loan] = []
    private var count: Int
    init(_ number: Int) {
      self.count = number
      self.number = number
    }
  }
}

struct LibraryPlan: SchemaMigrationPlan {
  static let schemas: [any VersionedSchema.Type] = [LibrarySchemaV1.self]
  static let stages: [MigrationStage] = []
}
