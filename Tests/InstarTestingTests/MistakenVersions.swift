import Instar

/// A new required attribute, which only code can fill.
enum RequiredPriceV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
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
    var price: Double
    var author: Author?
    init(isbn: String, title: String, pages: Int, price: Double) {
      (self.isbn, self.title, self.pages, self.price) = (isbn, title, pages, price)
    }
  }
}

/// `subtitle` is called `tagline`, but nothing says so.
enum RenamedV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Book.self, Author.self] }

  @Model final class Author {
    var name: String
    @Relationship(deleteRule: .cascade, inverse: \Book.author) var books: [Book] = []
    init(name: String) { self.name = name }
  }

  @Model final class Book {
    @Attribute(.unique) var isbn: String
    var title: String
    var tagline: String?
    var pages: Int
    var author: Author?
    init(isbn: String, title: String, pages: Int) {
      (self.isbn, self.title, self.pages) = (isbn, title, pages)
    }
  }
}

/// Version 1.0.0, edited after its release.
enum EditedV1: VersionedSchema {
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
    var edition: Int?
    var author: Author?
    init(isbn: String, title: String, pages: Int) {
      (self.isbn, self.title, self.pages) = (isbn, title, pages)
    }
  }
}

/// Titles must differ.
enum UniqueV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Book.self, Author.self] }

  @Model final class Author {
    var name: String
    @Relationship(deleteRule: .cascade, inverse: \Book.author) var books: [Book] = []
    init(name: String) { self.name = name }
  }

  @Model final class Book {
    @Attribute(.unique) var isbn: String
    @Attribute(.unique) var title: String
    var subtitle: String?
    var pages: Int
    var author: Author?
    init(isbn: String, title: String, pages: Int) {
      (self.isbn, self.title, self.pages) = (isbn, title, pages)
    }
  }
}

/// `subtitle` must have a value.
enum RequiredSubtitleV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Book.self, Author.self] }

  @Model final class Author {
    var name: String
    @Relationship(deleteRule: .cascade, inverse: \Book.author) var books: [Book] = []
    init(name: String) { self.name = name }
  }

  @Model final class Book {
    @Attribute(.unique) var isbn: String
    var title: String
    var subtitle: String
    var pages: Int
    var author: Author?
    init(isbn: String, title: String, subtitle: String, pages: Int) {
      (self.isbn, self.title, self.subtitle, self.pages) = (isbn, title, subtitle, pages)
    }
  }
}
