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
