import Instar

// Pairs of versions that differ by the rows of the page's table of changes.

/// A plan of two versions and the stage between them that Instar derives.
enum Lightweight<From: VersionedSchema, To: VersionedSchema>: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [From.self, To.self] }
  static var stages: [MigrationStage] {
    [.lightweight(fromVersion: From.self, toVersion: To.self)]
  }
}

/// A library before every change that a lightweight stage makes.
enum ShopV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] {
    [Article.self, Shelf.self, Label.self, Part.self, Maker.self]
  }

  @Model
  final class Article {
    var code: String
    var name: String
    var obsolete: String?
    var color: String = "red"
    var size: Int?
    var shelf: Shelf?
    var label: Label?
    var part: Part?
    var maker: Maker?
    init(code: String, name: String) {
      self.code = code
      self.name = name
    }
  }

  @Model
  final class Shelf {
    var name: String
    @Relationship(deleteRule: .nullify, inverse: \Article.shelf) var articles: [Article] = []
    init(name: String) { self.name = name }
  }

  @Model
  final class Label {
    var text: String
    @Relationship(inverse: \Article.label) var articles: [Article] = []
    init(text: String) { self.text = text }
  }

  @Model
  final class Part {
    var name: String
    init(name: String) { self.name = name }
  }

  @Model
  final class Maker {
    var name: String
    var article: Article?
    init(name: String) { self.name = name }
  }
}

enum ShopV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] {
    [Article.self, Shelf.self, Label.self, Part.self, Maker.self, Agency.self]
  }

  @Model
  final class Article {
    #Index<Article>([\.title])

    @Attribute(.unique) var code: String
    @Attribute(originalName: "name") var title: String
    var note: String?
    var language: String = "en"
    var color: String?
    var size: Int = 40
    @Relationship(originalName: "shelf") var place: Shelf?
    @Relationship(originalName: "label", inverse: \Label.articles) var labels: [Label] = []
    @Relationship(originalName: "part") var parts: [Part] = []
    @Relationship(originalName: "maker", inverse: \Maker.article) var makers: [Maker] = []
    init(code: String, title: String) {
      self.code = code
      self.title = title
    }
  }

  @Model
  final class Shelf {
    var name: String
    @Relationship(deleteRule: .cascade, inverse: \Article.place) var articles: [Article] = []
    init(name: String) { self.name = name }
  }

  @Model
  final class Label {
    var text: String
    var articles: [Article] = []
    init(text: String) { self.text = text }
  }

  @Model
  final class Part {
    var name: String
    init(name: String) { self.name = name }
  }

  @Model
  final class Maker {
    var name: String
    var article: Article?
    init(name: String) { self.name = name }
  }

  @Model
  final class Agency {
    var name: String
    init(name: String) { self.name = name }
  }
}

/// A person before the changes that need code.
enum PeopleV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Person.self, Team.self] }

  @Model
  final class Person {
    var name: String
    var email: String?
    var age: String
    @Relationship(inverse: \Team.members) var teams: [Team] = []
    init(name: String, email: String?, age: String) {
      self.name = name
      self.email = email
      self.age = age
    }
  }

  @Model
  final class Team {
    var title: String
    var members: [Person] = []
    init(title: String) { self.title = title }
  }
}

/// `email` becomes required, without a default.
enum RequiredEmail: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Person.self, Team.self] }

  @Model
  final class Person {
    var name: String
    var email: String
    var age: String
    @Relationship(inverse: \Team.members) var teams: [Team] = []
    init(name: String, email: String, age: String) {
      self.name = name
      self.email = email
      self.age = age
    }
  }

  @Model
  final class Team {
    var title: String
    var members: [Person] = []
    init(title: String) { self.title = title }
  }
}

/// `name` becomes unique.
enum UniqueName: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Person.self, Team.self] }

  @Model
  final class Person {
    @Attribute(.unique) var name: String
    var email: String?
    var age: String
    @Relationship(inverse: \Team.members) var teams: [Team] = []
    init(name: String, email: String?, age: String) {
      self.name = name
      self.email = email
      self.age = age
    }
  }

  @Model
  final class Team {
    var title: String
    var members: [Person] = []
    init(title: String) { self.title = title }
  }
}

/// `age` is a number, under its own name.
enum NumberAge: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Person.self, Team.self] }

  @Model
  final class Person {
    var name: String
    var email: String?
    var age: Int
    @Relationship(inverse: \Team.members) var teams: [Team] = []
    init(name: String, email: String?, age: Int) {
      self.name = name
      self.email = email
      self.age = age
    }
  }

  @Model
  final class Team {
    var title: String
    var members: [Person] = []
    init(title: String) { self.title = title }
  }
}

/// Both ages, on the way to `FinalAge`.
enum BothAges: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 1, 0)
  static var models: [any PersistentModel.Type] { [Person.self, Team.self] }

  @Model
  final class Person {
    var name: String
    var email: String?
    @Attribute(originalName: "age") var ageOld: String
    var ageNew: Int?
    @Relationship(inverse: \Team.members) var teams: [Team] = []
    init(name: String, email: String?, ageOld: String) {
      self.name = name
      self.email = email
      self.ageOld = ageOld
    }
  }

  @Model
  final class Team {
    var title: String
    var members: [Person] = []
    init(title: String) { self.title = title }
  }
}

enum FinalAge: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Person.self, Team.self] }

  @Model
  final class Person {
    @Attribute(originalName: "name") var fullName: String
    var email: String?
    @Attribute(originalName: "ageNew") var age: Int?
    @Relationship(inverse: \Team.members) var teams: [Team] = []
    init(fullName: String) { self.fullName = fullName }
  }

  @Model
  final class Team {
    var title: String
    var members: [Person] = []
    init(title: String) { self.title = title }
  }
}

/// `name` is split in two, and memberships have a model of their own.
enum Memberships: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Person.self, Team.self, Membership.self] }

  @Model
  final class Person {
    @Attribute(originalName: "name") var givenName: String
    var familyName: String = ""
    var email: String?
    var age: String
    @Relationship(deleteRule: .cascade, inverse: \Membership.person)
    var memberships: [Membership] = []
    init(givenName: String, age: String) {
      self.givenName = givenName
      self.age = age
    }
  }

  @Model
  final class Team {
    var title: String
    @Relationship(deleteRule: .cascade, inverse: \Membership.team)
    var memberships: [Membership] = []
    init(title: String) { self.title = title }
  }

  @Model
  final class Membership {
    var person: Person?
    var team: Team?
    var role: String
    init(person: Person?, team: Team?, role: String) {
      self.person = person
      self.team = team
      self.role = role
    }
  }
}
