import Instar
import Synchronization

/// Two stores of one app: customers with their orders, and visits of pages.
enum SalesV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] {
    [Customer.self, Order.self, Draft.self, Visit.self]
  }

  @Model
  final class Customer {
    var name: String
    @Relationship(inverse: \Order.customer) var orders: [Order] = []
    init(name: String) { self.name = name }
  }

  @Model
  final class Order {
    var number: Int
    var customer: Customer?
    init(number: Int, customer: Customer?) {
      self.number = number
      self.customer = customer
    }
  }

  /// Gone in the next version, and related to nothing.
  @Model
  final class Draft {
    var text: String
    init(text: String) { self.text = text }
  }

  @Model
  final class Visit {
    var page: String
    var count: Int
    init(page: String, count: Int) {
      self.page = page
      self.count = count
    }
  }
}

/// With other names; customers know how often their page was visited, which the other store tells.
enum SalesV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Customer.self, Order.self, Page.self] }

  @Model
  final class Customer {
    @Attribute(originalName: "name") var fullName: String
    var visitCount: Int = 0
    @Relationship(inverse: \Order.customer) var orders: [Order] = []
    init(fullName: String) { self.fullName = fullName }
  }

  @Model
  final class Order {
    var number: Int
    var customer: Customer?
    init(number: Int, customer: Customer?) {
      self.number = number
      self.customer = customer
    }
  }

  @Model(originalName: "Visit")
  final class Page {
    @Attribute(originalName: "page") var path: String
    var count: Int
    init(path: String, count: Int) {
      self.path = path
      self.count = count
    }
  }
}

enum SalesPlan: SchemaMigrationPlan {
  /// What the closures saw, in the order in which they ran.
  static let seen = Mutex<[String]>([])

  static var schemas: [any VersionedSchema.Type] { [SalesV1.self, SalesV2.self] }
  static var stages: [MigrationStage] {
    [
      .custom(fromVersion: SalesV1.self, toVersion: SalesV2.self) { context in
        let customers = try context.fetchCount(FetchDescriptor<SalesV1.Customer>())
        let visits = try context.fetch(FetchDescriptor<SalesV1.Visit>())
        seen.withLock { $0.append("\(customers) customers, \(visits.count) visits") }
        try context.scratchpad.save(customers, for: "customers")
        for visit in visits {
          try context.scratchpad.save(visit.count + 1, for: "next", of: visit)
        }
      } didMigrate: { context in
        let pages = try context.fetch(
          FetchDescriptor<SalesV2.Page>(sortBy: [SortDescriptor(\.path)]))
        let next = try pages.map {
          try context.scratchpad.value(Int.self, for: "next", of: $0) ?? 0
        }
        let kept = try context.scratchpad.value(Int.self, for: "customers") ?? 0
        for customer in try context.fetch(FetchDescriptor<SalesV2.Customer>()) {
          customer.visitCount = pages.first { $0.path == "/" + customer.fullName }?.count ?? 0
        }
        context.insert(SalesV2.Page(path: "/migrated", count: 1))
        seen.withLock { $0.append("next \(next) of pages, \(kept) customers before") }
      }
    ]
  }
}

/// The same way by code that asks which models it has.
enum CarefulSalesPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { SalesPlan.schemas }
  static var stages: [MigrationStage] {
    [
      .custom(fromVersion: SalesV1.self, toVersion: SalesV2.self, willMigrate: nil) { context in
        if context.container.schema.entity(for: SalesV2.Page.self) != nil {
          context.insert(SalesV2.Page(path: "/careful", count: 1))
        }
        if context.container.schema.entity(for: SalesV2.Customer.self) != nil {
          context.insert(SalesV2.Customer(fullName: "Careful"))
        }
      }
    ]
  }
}

enum LightweightSalesPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { SalesPlan.schemas }
  static var stages: [MigrationStage] {
    [.lightweight(fromVersion: SalesV1.self, toVersion: SalesV2.self)]
  }
}

enum ThrowingSalesPlan: SchemaMigrationPlan {
  struct Refusal: Error, CustomStringConvertible { var description: String { "no, thanks" } }
  static var schemas: [any VersionedSchema.Type] { SalesPlan.schemas }
  static var stages: [MigrationStage] {
    [
      .custom(fromVersion: SalesV1.self, toVersion: SalesV2.self, willMigrate: nil) { context in
        try context.delete(model: SalesV2.Customer.self)
        try context.delete(model: SalesV2.Page.self)
        throw Refusal()
      }
    ]
  }
}

/// Leaves a required property of customers without a value, which their verification finds.
enum ForgetfulSalesPlan: SchemaMigrationPlan {
  enum SalesV2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Customer.self, Order.self, Visit.self] }

    @Model
    final class Customer {
      var name: String
      var level: String
      @Relationship(inverse: \Order.customer) var orders: [Order] = []
      init(name: String, level: String) {
        self.name = name
        self.level = level
      }
    }

    @Model
    final class Order {
      var number: Int
      var customer: Customer?
      init(number: Int) { self.number = number }
    }

    @Model
    final class Visit {
      var page: String
      var count: Int
      init(page: String, count: Int) {
        self.page = page
        self.count = count
      }
    }
  }

  static let isForgetful = Mutex(true)
  /// A file that the stage removes.
  static let removedFile = Mutex<String?>(nil)

  static var schemas: [any VersionedSchema.Type] { [SalesV1.self, SalesV2.self] }
  static var stages: [MigrationStage] {
    [
      .custom(fromVersion: SalesV1.self, toVersion: SalesV2.self, willMigrate: nil) { context in
        if let path = removedFile.withLock(\.self) {
          try FileManager.default.removeItem(atPath: path)
        }
        guard !isForgetful.withLock(\.self) else { return }
        for customer in try context.fetch(FetchDescriptor<SalesV2.Customer>()) {
          customer.level = "new"
        }
      }
    ]
  }
}

/// Its first version has a relationship between models that are in two stores later.
enum PartedPlan: SchemaMigrationPlan {
  enum V1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Customer.self, Visit.self] }

    @Model
    final class Customer {
      var name: String
      @Relationship(inverse: \Visit.customer) var visits: [Visit] = []
      init(name: String) { self.name = name }
    }

    @Model
    final class Visit {
      var page: String
      var customer: Customer?
      init(page: String) { self.page = page }
    }
  }

  enum V2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Customer.self, Visit.self] }

    @Model
    final class Customer {
      var name: String
      init(name: String) { self.name = name }
    }

    @Model
    final class Visit {
      var page: String
      init(page: String) { self.page = page }
    }
  }

  static var schemas: [any VersionedSchema.Type] { [V1.self, V2.self] }
  static var stages: [MigrationStage] {
    [.lightweight(fromVersion: V1.self, toVersion: V2.self)]
  }
}

/// Its second version has no notes.
enum InterruptedPlan: SchemaMigrationPlan {
  enum V1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Customer.self, Note.self] }

    @Model
    final class Customer {
      var name: String
      init(name: String) { self.name = name }
    }

    @Model
    final class Note {
      var text: String
      init(text: String) { self.text = text }
    }
  }

  enum V2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Customer.self] }

    @Model
    final class Customer {
      var name: String
      init(name: String) { self.name = name }
    }
  }

  enum V3: VersionedSchema {
    static let versionIdentifier = Schema.Version(3, 0, 0)
    static var models: [any PersistentModel.Type] { [Customer.self, Note.self] }

    @Model
    final class Customer {
      var name: String
      init(name: String) { self.name = name }
    }

    @Model
    final class Note {
      var text: String
      init(text: String) { self.text = text }
    }
  }

  static var schemas: [any VersionedSchema.Type] { [V1.self, V2.self, V3.self] }
  static var stages: [MigrationStage] {
    [
      .lightweight(fromVersion: V1.self, toVersion: V2.self),
      .custom(fromVersion: V2.self, toVersion: V3.self, willMigrate: nil) { context in
        for customer in try context.fetch(FetchDescriptor<V3.Customer>()) {
          context.insert(V3.Note(text: "of " + customer.name))
        }
      },
    ]
  }
}
