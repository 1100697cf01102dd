import Instar

// Models of ordinary tables, with every kind of key and column.

enum Shop: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 2, 0)
  static var models: [any PersistentModel.Type] {
    [Customer.self, Product.self, Purchase.self, PurchaseLine.self, Label.self]
  }

  @Table("customer", .check("length(name) > 0"))
  @Model final class Customer {
    @Column(.autoincrement) var id: Int
    @Column(.collation("NOCASE")) @Attribute(.unique) var name: String
    var isActive: Bool = true
    var joinedAt: Date
    @Column("birth", .encoding(.julianDay)) var birthday: Date?
    @Column(.encoding(.unixSeconds)) var seenAt: Date?
    var settings: [String: Int] = [:]
    @Column(.generated("upper(name)")) var shout: String = ""
    @Relationship(deleteRule: .cascade, inverse: \Purchase.customer) var purchases: [Purchase] = []

    init(name: String, joinedAt: Date) {
      self.id = 0
      self.name = name
      self.joinedAt = joinedAt
    }
  }

  @Table(.strict)
  @Model final class Product {
    @Column(.primaryKey) var sku: String
    var title: String
    var price: Double
    @Relationship(inverse: \Label.products) var labels: [Label] = []

    init(sku: String, title: String, price: Double) {
      self.sku = sku
      self.title = title
      self.price = price
    }
  }

  @Table
  @Model final class Purchase {
    @Column(.primaryKey) var number: UUID
    var customer: Customer?
    @Relationship(deleteRule: .cascade, inverse: \PurchaseLine.purchase) var lines: [PurchaseLine] =
      []

    init(number: UUID, customer: Customer?) {
      self.number = number
      self.customer = customer
    }
  }

  @Table("line", .withoutRowID, .index("line_amount", on: "amount DESC", where: "amount > 1"))
  @Model final class PurchaseLine {
    @Column(.primaryKey) var position: Int
    @Column(.primaryKey) var purchase: Purchase
    var product: Product
    var amount: Int

    init(position: Int, purchase: Purchase, product: Product, amount: Int) {
      self.position = position
      self.purchase = purchase
      self.product = product
      self.amount = amount
    }
  }

  @Table("label")
  @Model final class Label {
    var text: String
    @Column(.junction("product_label", own: "label", other: "product"))
    var products: [Product] = []

    init(text: String) { self.text = text }
  }
}
