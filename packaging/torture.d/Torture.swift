import Glibc
import Instar

// The plans that packaging/torture migrates with: one store of each format. What a stage does to its worker is in the
// store's `behaviour`, so that one plugin serves every case.

// MARK: Core Data's format

enum ParcelsV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Shelf.self, Parcel.self] }

  @Model final class Shelf {
    var behaviour: String
    @Relationship(inverse: \Parcel.shelf) var parcels: [Parcel] = []
    init(behaviour: String) { self.behaviour = behaviour }
  }

  @Model final class Parcel {
    var name: String
    var size: Int
    @Attribute(.externalStorage) var content: Data?
    var shelf: Shelf?
    init(name: String, size: Int) {
      self.name = name
      self.size = size
    }
  }
}

enum ParcelsV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Shelf.self, Parcel.self] }

  @Model final class Shelf {
    var behaviour: String
    @Relationship(inverse: \Parcel.shelf) var parcels: [Parcel] = []
    init(behaviour: String) { self.behaviour = behaviour }
  }

  @Model final class Parcel {
    var name: String
    var size: Int
    var label: String?
    @Attribute(.externalStorage) var content: Data?
    var shelf: Shelf?
    init(name: String, size: Int) {
      self.name = name
      self.size = size
    }
  }
}

enum ParcelsPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [ParcelsV1.self, ParcelsV2.self] }
  static var stages: [MigrationStage] {
    [
      .custom(
        fromVersion: ParcelsV1.self, toVersion: ParcelsV2.self,
        willMigrate: { context in
          let shelves = try context.fetch(FetchDescriptor<ParcelsV1.Shelf>())
          try Behaviour.perform(shelves.first?.behaviour ?? "", in: context)
        },
        didMigrate: { context in
          for parcel in try context.fetch(FetchDescriptor<ParcelsV2.Parcel>()) {
            parcel.size += 1000
            parcel.label = "parcel of \(parcel.size)"
            // Every fourth large value becomes another one, so that files come and go.
            if parcel.size % 4 == 0, let content = parcel.content {
              parcel.content = Data(content.reversed())
            }
          }
        })
    ]
  }
}

// MARK: Ordinary tables

enum AccountsV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Account.self, Payment.self, Setting.self] }

  @Table("account") @Model final class Account {
    var id: Int
    @Attribute(.unique) var owner: String
    var balance: Int
    @Relationship(deleteRule: .cascade, inverse: \Payment.account) var payments: [Payment] = []
    init(id: Int, owner: String, balance: Int) {
      self.id = id
      self.owner = owner
      self.balance = balance
    }
  }

  @Table("payment") @Model final class Payment {
    var id: Int
    var amount: Int
    @Column("account_id") var account: Account?
    init(id: Int, amount: Int) {
      self.id = id
      self.amount = amount
    }
  }

  @Table("setting") @Model final class Setting {
    var id: Int
    var behaviour: String
    init(id: Int, behaviour: String) {
      self.id = id
      self.behaviour = behaviour
    }
  }
}

enum AccountsV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Account.self, Payment.self, Setting.self] }

  @Table("account") @Model final class Account {
    var id: Int
    @Attribute(.unique) var owner: String
    @Attribute(originalName: "balance") var cents: Int
    var label: String?
    @Relationship(deleteRule: .cascade, inverse: \Payment.account) var payments: [Payment] = []
    init(id: Int, owner: String, cents: Int) {
      self.id = id
      self.owner = owner
      self.cents = cents
    }
  }

  @Table("payment") @Model final class Payment {
    var id: Int
    var amount: Int
    @Column("account_id") var account: Account?
    init(id: Int, amount: Int) {
      self.id = id
      self.amount = amount
    }
  }

  @Table("setting") @Model final class Setting {
    var id: Int
    var behaviour: String
    init(id: Int, behaviour: String) {
      self.id = id
      self.behaviour = behaviour
    }
  }
}

enum AccountsPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [AccountsV1.self, AccountsV2.self] }
  static var stages: [MigrationStage] {
    [
      .custom(
        fromVersion: AccountsV1.self, toVersion: AccountsV2.self,
        willMigrate: { context in
          let settings = try context.fetch(FetchDescriptor<AccountsV1.Setting>())
          try Behaviour.perform(settings.first?.behaviour ?? "", in: context)
        },
        didMigrate: { context in
          for account in try context.fetch(FetchDescriptor<AccountsV2.Account>()) {
            account.cents += 1000
            account.label = "account of \(account.cents)"
          }
        })
    ]
  }
}

// MARK: What a hostile plugin does

enum Behaviour {
  static func perform(_ name: String, in context: ModelContext) throws {
    switch name {
    case "slow": usleep(400_000)
    default: break
    }
  }
}

#InstarPlugin(ParcelsPlan.self, AccountsPlan.self)
