import Instar

/// Four versions of one app's models, each stage with another kind of change.
///
/// 1.0.0 → 1.1.0 lightweight: a property renamed, one added, one removed, one that becomes required with a default, an
/// entity added whose name sorts before all others, so that every entity gets another number.
/// 1.1.0 → 2.0.0 custom: the type of `pages` changes with the new value beside the old one.
/// 2.0.0 → 3.0.0 custom: authors of the same name are merged, then the name becomes unique.
enum ShelfV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Book.self, Author.self] }

  @Model
  final class Book {
    @Attribute(.unique) var isbn: String
    var name: String
    var pages: String
    var shelf: String
    var language: String?
    @Relationship(inverse: \Author.books) var authors: [Author] = []

    init(isbn: String, name: String, pages: String) {
      self.isbn = isbn
      self.name = name
      self.pages = pages
      shelf = "A"
    }
  }

  @Model
  final class Author {
    var name: String
    var books: [Book] = []
    var mentor: Author?

    init(name: String) { self.name = name }
  }
}

enum ShelfV1_1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 1, 0)
  static var models: [any PersistentModel.Type] { [Book.self, Author.self, Agency.self] }

  @Model
  final class Agency {
    var name: String
    var authors: [Author] = []

    init(name: String) { self.name = name }
  }

  @Model
  final class Book {
    @Attribute(.unique) var isbn: String
    @Attribute(originalName: "name") var title: String
    @Attribute(originalName: "pages") var pagesOld: String
    var pagesNew: Int?
    var language: String = "it's \"en\""
    var rating: Double = 2.5
    @Relationship(inverse: \Author.books) var authors: [Author] = []

    init(isbn: String, title: String) {
      self.isbn = isbn
      self.title = title
      pagesOld = ""
    }
  }

  @Model
  final class Author {
    var name: String
    var books: [Book] = []
    var mentor: Author?
    var agency: Agency?

    init(name: String) { self.name = name }
  }
}

enum ShelfV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Book.self, Author.self, Agency.self] }

  @Model
  final class Agency {
    var name: String
    var authors: [Author] = []

    init(name: String) { self.name = name }
  }

  @Model
  final class Book {
    @Attribute(.unique) var isbn: String
    var title: String
    @Attribute(originalName: "pagesNew") var pages: Int?
    var language: String = "en"
    var rating: Double = 2.5
    @Relationship(originalName: "authors", inverse: \Author.books) var writers: [Author] = []

    init(isbn: String, title: String) {
      self.isbn = isbn
      self.title = title
    }
  }

  @Model
  final class Author {
    var name: String
    var books: [Book] = []
    var mentor: Author?
    var agency: Agency?

    init(name: String) { self.name = name }
  }
}

enum ShelfV3: VersionedSchema {
  static let versionIdentifier = Schema.Version(3, 0, 0)
  static var models: [any PersistentModel.Type] { [Book.self, Author.self] }

  @Model
  final class Book {
    @Attribute(.unique) var isbn: String
    var title: String
    var pages: Int?
    var language: String = "en"
    var rating: Double = 2.5
    @Relationship(inverse: \Author.books) var writers: [Author] = []

    init(isbn: String, title: String) {
      self.isbn = isbn
      self.title = title
    }
  }

  @Model
  final class Author {
    @Attribute(.unique) var name: String
    var books: [Book] = []
    var mentor: Author?

    init(name: String) { self.name = name }
  }
}

enum ShelfPlan: SchemaMigrationPlan {
  static let schemas: [any VersionedSchema.Type] = [
    ShelfV1.self, ShelfV1_1.self, ShelfV2.self, ShelfV3.self,
  ]
  /// Given out of order: the engine finds the way.
  static var stages: [MigrationStage] { [mergeAuthors, countPages, addAgency] }

  static let addAgency = MigrationStage.lightweight(
    fromVersion: ShelfV1.self, toVersion: ShelfV1_1.self)

  static let countPages = MigrationStage.custom(
    fromVersion: ShelfV1_1.self, toVersion: ShelfV2.self,
    willMigrate: { context in
      for book in try context.fetch(FetchDescriptor<ShelfV1_1.Book>()) {
        book.pagesNew = Int(book.pagesOld)
      }
      // Left unsaved: what a closure changes is saved when it returns.
    },
    didMigrate: { context in
      for book in try context.fetch(FetchDescriptor<ShelfV2.Book>()) where book.pages == nil {
        book.pages = -1
      }
    })

  static let mergeAuthors = MigrationStage.custom(
    fromVersion: ShelfV2.self, toVersion: ShelfV3.self,
    willMigrate: { context in
      var kept: [String: ShelfV2.Author] = [:]
      for author in try context.fetch(
        FetchDescriptor<ShelfV2.Author>(sortBy: [SortDescriptor(\.name)]))
      {
        if let first = kept[author.name] {
          first.books += author.books
          context.delete(author)
        } else {
          kept[author.name] = author
        }
      }
    }, didMigrate: nil)
}
