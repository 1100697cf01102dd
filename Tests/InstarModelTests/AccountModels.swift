import Instar

// Models with two unique values, in both formats of a store.

protocol Account: PersistentModel {
  associatedtype DeviceModel: AccountDevice where DeviceModel.AccountModel == Self
  associatedtype CardModel: AccountCard where CardModel.AccountModel == Self

  var email: String { get set }
  var login: String { get set }
  var size: Int { get set }
  /// Deleted with the account.
  var devices: [DeviceModel] { get set }
  /// Deleted with the account.
  var card: CardModel? { get set }
  init(_ email: String, _ login: String, size: Int)
}

protocol AccountDevice: PersistentModel {
  associatedtype AccountModel: Account
  var name: String { get set }
  var account: AccountModel? { get set }
  init(_ name: String)
}

/// One-to-one, with a required account.
protocol AccountCard: PersistentModel {
  associatedtype AccountModel: Account
  var account: AccountModel { get set }
  init(account: AccountModel)
}

extension LinkedFormat {
  var account: any Account.Type {
    switch self {
    case .coreData: CoreDataAccounts.User.self
    case .plain: PlainAccounts.User.self
    }
  }
}

extension Account {
  /// A container over a store in memory.
  static func container() throws -> ModelContainer {
    try ModelContainer.inMemory(Self.self, DeviceModel.self, CardModel.self)
  }
}

extension ModelContext {
  /// The accounts with their devices, as text.
  func accounts<A: Account>(_ type: A.Type) throws -> [String] {
    let accounts = try all(A.self).map { account in
      "\(account.email) \(account.login) \(account.size): "
        + account.devices.map(\.name).sorted().joined(separator: " ")
    }
    let devices = try all(A.DeviceModel.self).map { "\($0.name) of \($0.account?.email ?? "nil")" }
    return (accounts + devices).sorted()
  }
}

enum CoreDataAccounts {
  @Model
  final class User {
    @Attribute(.unique) var email: String
    @Attribute(.unique) var login: String
    var size: Int
    @Relationship(deleteRule: .cascade, inverse: \Device.account) var devices: [Device] = []
    @Relationship(deleteRule: .cascade, inverse: \Card.account) var card: Card?
    init(_ email: String, _ login: String, size: Int) {
      self.email = email
      self.login = login
      self.size = size
    }
  }

  @Model
  final class Device {
    var name: String
    var account: User?
    init(_ name: String) { self.name = name }
  }

  @Model
  final class Card {
    var account: User
    init(account: User) { self.account = account }
  }
}

enum PlainAccounts {
  @Table("account_user")
  @Model
  final class User {
    @Attribute(.unique) var email: String
    @Attribute(.unique) var login: String
    var size: Int
    @Relationship(deleteRule: .cascade, inverse: \Device.account) var devices: [Device] = []
    @Relationship(deleteRule: .cascade, inverse: \Card.account) var card: Card?
    init(_ email: String, _ login: String, size: Int) {
      self.email = email
      self.login = login
      self.size = size
    }
  }

  @Table("account_device")
  @Model
  final class Device {
    var name: String
    var account: User?
    init(_ name: String) { self.name = name }
  }

  @Table("account_card")
  @Model
  final class Card {
    var account: User
    init(account: User) { self.account = account }
  }
}

extension CoreDataAccounts.User: Account {
  typealias DeviceModel = CoreDataAccounts.Device
  typealias CardModel = CoreDataAccounts.Card
}

extension CoreDataAccounts.Device: AccountDevice {
  typealias AccountModel = CoreDataAccounts.User
}

extension CoreDataAccounts.Card: AccountCard {
  typealias AccountModel = CoreDataAccounts.User
}

extension PlainAccounts.User: Account {
  typealias DeviceModel = PlainAccounts.Device
  typealias CardModel = PlainAccounts.Card
}

extension PlainAccounts.Device: AccountDevice {
  typealias AccountModel = PlainAccounts.User
}

extension PlainAccounts.Card: AccountCard {
  typealias AccountModel = PlainAccounts.User
}
