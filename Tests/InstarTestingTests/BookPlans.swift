import Instar

/// Versions of a library's models. The plans below use them, right and wrong.
enum BooksV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Book.self, Author.self] }

  @Model final class Author {
    var name: String
    @Relationship(deleteRule: .cascade, inverse: \Book.author) var books: [Book] = []
    init(name: String) { self.name = name }
  }

  @Model final class Book {
    @Attribute(.unique) var isbn: String
    var title: String
    var subtitle: String?
    var pages: Int
    var author: Author?
    init(isbn: String, title: String, subtitle: String? = nil, pages: Int) {
      (self.isbn, self.title, self.subtitle, self.pages) = (isbn, title, subtitle, pages)
    }
  }
}

/// Renames `title`, and adds `isLong`, which a stage computes.
enum BooksV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Book.self, Author.self] }

  @Model final class Author {
    var name: String
    @Relationship(deleteRule: .cascade, inverse: \Book.author) var books: [Book] = []
    init(name: String) { self.name = name }
  }

  @Model final class Book {
    @Attribute(.unique) var isbn: String
    @Attribute(originalName: "title") var heading: String
    var subtitle: String?
    var pages: Int
    var isLong: Bool = false
    var author: Author?
    init(isbn: String, heading: String, subtitle: String? = nil, pages: Int) {
      (self.isbn, self.heading, self.subtitle, self.pages) = (isbn, heading, subtitle, pages)
    }
  }
}

/// The plan as it should be.
enum BooksPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [BooksV1.self, BooksV2.self] }
  static var stages: [MigrationStage] { [findLong] }

  static let findLong = MigrationStage.custom(
    fromVersion: BooksV1.self, toVersion: BooksV2.self, willMigrate: nil,
    didMigrate: { context in
      try context.enumerate(FetchDescriptor<BooksV2.Book>()) { book in
        book.isLong = book.pages > 500
      }
    })
}

/// The same by statements: the first one writes three rows, the second one two.
enum SQLBooksPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [BooksV1.self, BooksV2.self] }
  static var stages: [MigrationStage] {
    [
      .sql(
        fromVersion: BooksV1.self, toVersion: BooksV2.self,
        before: ["UPDATE ZBOOK SET ZTITLE = trim(ZTITLE)"],
        after: ["UPDATE ZBOOK SET ZISLONG = 1 WHERE ZPAGES > \(500)"])
    ]
  }
}

/// The same by a transform, which computes three rows.
enum TransformedBooksPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [BooksV1.self, BooksV2.self] }
  static var stages: [MigrationStage] {
    [
      .transform(fromVersion: BooksV1.self, toVersion: BooksV2.self) {
        Transform(BooksV1.Book.self, BooksV2.Book.self)
          .set(\.isLong, from: \.pages) { $0 > 500 }
          .set(\.heading, from: \.title) { $0 }
      }
    ]
  }
}

/// The same by SQL in a closure, after a model that the closure changes.
enum SQLInClosureBooksPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [BooksV1.self, BooksV2.self] }
  static var stages: [MigrationStage] {
    [
      .custom(
        fromVersion: BooksV1.self, toVersion: BooksV2.self, willMigrate: nil,
        didMigrate: { context in
          var descriptor = FetchDescriptor<BooksV2.Book>(sortBy: [SortDescriptor(\.isbn)])
          descriptor.fetchLimit = 1
          for book in try context.fetch(descriptor) { book.subtitle = "First" }
          try context.sql("UPDATE ZBOOK SET ZISLONG = 1 WHERE ZPAGES > \(500)")
        })
    ]
  }
}
