import Instar

/// Models for two stores: customers with their orders, and visits of pages.
enum TwoStores: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Customer.self, Order.self, Visit.self] }

  @Model
  final class Customer {
    @Attribute(.unique) var email: String
    var name: String
    @Relationship(deleteRule: .cascade, inverse: \Order.customer) var orders: [Order] = []

    init(email: String, name: String) {
      self.email = email
      self.name = name
    }
  }

  @Model
  final class Order {
    var number: Int
    var customer: Customer?

    init(number: Int, customer: Customer? = nil) {
      self.number = number
      self.customer = customer
    }
  }

  @Model
  final class Visit {
    @Attribute(.unique) var page: String
    var count: Int

    init(page: String, count: Int = 1) {
      self.page = page
      self.count = count
    }
  }
}

/// Models of which some are in ordinary tables.
enum TwoFormats: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Author.self, Essay.self, Note.self] }

  @Table
  @Model
  final class Author {
    @Column(.primaryKey) var id: Int
    @Relationship(deleteRule: .noAction, inverse: \Essay.author) var essays: [Essay] = []
    init(id: Int) { self.id = id }
  }

  @Table
  @Model
  final class Essay {
    @Column(.primaryKey) var id: Int
    var author: Author?
    init(id: Int, author: Author?) {
      self.id = id
      self.author = author
    }
  }

  @Model
  final class Note {
    var text: String
    init(text: String) { self.text = text }
  }
}
