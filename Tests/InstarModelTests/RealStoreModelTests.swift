import GRDB
import Instar
import InstarTestSupport
import Testing

/// The models behind `CartKitSwiftData_v1.sqlite`, read off its tables. A to-many relationship without an inverse has
/// its column in the destination's table.
private enum Carts: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] {
    [CartModel.self, CartItemModel.self, CartItemModifierModel.self]
  }

  @Model
  final class CartModel {
    @Attribute(.unique) var id: String
    var storeId: String
    var profileId: String?
    var status: String
    var context: String?
    var displayName: String?
    var storeImageURLString: String?
    var metadataJSON: Data?
    var minSubtotalAmount: Decimal?
    var minSubtotalCurrencyCode: String?
    var maxItemCount: Int?
    var createdAt: Date
    var updatedAt: Date
    @Relationship(deleteRule: .cascade) var items: [CartItemModel] = []

    init(id: String, storeId: String, status: String, createdAt: Date) {
      self.id = id
      self.storeId = storeId
      self.status = status
      self.createdAt = createdAt
      self.updatedAt = createdAt
    }
  }

  @Model
  final class CartItemModel {
    @Attribute(.unique) var id: String
    var productId: String
    var quantity: Int
    var unitPriceAmount: Decimal
    var unitPriceCurrencyCode: String
    var totalPriceAmount: Decimal?
    var totalPriceCurrencyCode: String?
    var imageURLString: String?
    var availableStock: Int?
    @Relationship(deleteRule: .cascade) var modifiers: [CartItemModifierModel] = []

    init(id: String, productId: String, quantity: Int, unitPriceAmount: Decimal) {
      self.id = id
      self.productId = productId
      self.quantity = quantity
      self.unitPriceAmount = unitPriceAmount
      self.unitPriceCurrencyCode = "EUR"
    }
  }

  @Model
  final class CartItemModifierModel {
    @Attribute(.unique) var id: String
    var name: String
    var priceDeltaAmount: Decimal
    var priceDeltaCurrencyCode: String

    init(id: String, name: String, priceDeltaAmount: Decimal) {
      self.id = id
      self.name = name
      self.priceDeltaAmount = priceDeltaAmount
      self.priceDeltaCurrencyCode = "EUR"
    }
  }
}

/// The model behind `SampleModel3_V1.sqlite`, which Core Data wrote, and which declares no version.
private enum Pets: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [User.self] }

  @Model
  final class User {
    var name: String?
    var petName: String?

    init(name: String, petName: String) {
      self.name = name
      self.petName = petName
    }
  }
}

@Suite(
  "Models of stores that Apple's frameworks wrote",
  .enabled(if: RealStores.areGiven, "INSTAR_REAL_STORES is not set"))
struct RealStoreModelTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func container(_ schema: any VersionedSchema.Type, _ path: String) throws
    -> ModelContainer
  {
    try ModelContainer(
      for: Schema(versionedSchema: schema),
      configurations: ModelConfiguration(url: URL(filePath: path)))
  }

  /// The rows of `statement` as text, by a connection that knows no models, of a store that passes SQLite's check.
  private func rows(_ statement: String, in path: String) throws -> [String] {
    let queue = try DatabaseQueue(path: path)
    let rows = try queue.read { db in
      #expect(try String.fetchOne(db, sql: "PRAGMA integrity_check") == "ok")
      return try Row.fetchAll(db, sql: statement).map { row in
        row.databaseValues.map { String.fromDatabaseValue($0) ?? "\($0)" }.joined(separator: " ")
      }
    }
    try queue.close()
    return rows
  }

  @Test("the history that SwiftData wrote is read, and continued in its own tables")
  func history() throws {
    let path = try #require(
      try RealStores.copy("Karim-ezzedine__CartKit__CartKitSwiftData_v1.sqlite", to: folder))
    let container = try container(Carts.self, path)
    let context = ModelContext(container)
    let cart = try #require(try context.fetch(FetchDescriptor<Carts.CartModel>()).first)
    cart.status = "closed"
    context.author = "app"
    try context.save()
    let all = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>())
    #expect(all.map(\.transactionIdentifier) == [1, 2])
    #expect(all.map(\.author) == [nil, "app"])
    #expect(all[0].timestamp == Date(timeIntervalSinceReferenceDate: 791478105.826932))
    #expect(all[0].bundleIdentifier == "com.apple.dt.xctest.tool")
    #expect(all[0].processIdentifier == "xctest")
    #expect(
      all.flatMap(\.changes).map(\.changedPersistentIdentifier)
        == [cart.persistentModelID, cart.persistentModelID])
    guard case .insert(_ as DefaultHistoryInsert<Carts.CartModel>) = all[0].changes.first,
      case .update(let update as DefaultHistoryUpdate<Carts.CartModel>) = all[1].changes.first
    else {
      Issue.record("not an insertion and an update of a cart")
      return
    }
    #expect(update.updatedAttributes.map { $0 as AnyKeyPath } == [\Carts.CartModel.status])
    try container.close()
    #expect(
      try rows("SELECT Z_NAME, Z_MAX FROM Z_PRIMARYKEY WHERE Z_ENT > 16000", in: path)
        == ["CHANGE 2", "TRANSACTION 2", "TRANSACTIONSTRING 4"])
  }

  @Test("SwiftData's carts are read, changed and filled, with items below them, and opened again")
  func carts() throws {
    let path = try #require(
      try RealStores.copy("Karim-ezzedine__CartKit__CartKitSwiftData_v1.sqlite", to: folder))
    let container = try container(Carts.self, path)
    let context = ModelContext(container)
    let cart = try #require(try context.fetch(FetchDescriptor<Carts.CartModel>()).first)
    #expect(cart.id == "31D0046D-3C85-410E-BBB0-141FC0105E06")
    #expect(cart.storeId == "store-legacy" && cart.status == "active" && cart.profileId == nil)
    #expect(cart.createdAt == Date(timeIntervalSinceReferenceDate: 791478105.80792))
    #expect(cart.metadataJSON == Data(#"{"source":"legacy-swiftdata"}"#.utf8))
    #expect(cart.items.isEmpty)

    cart.status = "closed"
    cart.minSubtotalAmount = Decimal(string: "12.5")
    for number in 1...2 {
      let item = Carts.CartItemModel(
        id: "item-\(number)", productId: "tea", quantity: number,
        unitPriceAmount: Decimal(number))
      item.modifiers = [
        Carts.CartItemModifierModel(
          id: "modifier-\(number)", name: "milk", priceDeltaAmount: Decimal(0))
      ]
      cart.items.append(item)
    }
    try context.save()
    try container.close()

    let reopened = try self.container(Carts.self, path)
    let again = ModelContext(reopened)
    let kept = try #require(try again.fetch(FetchDescriptor<Carts.CartModel>()).first)
    #expect(kept.status == "closed" && kept.minSubtotalAmount == Decimal(string: "12.5"))
    #expect(kept.metadataJSON == Data(#"{"source":"legacy-swiftdata"}"#.utf8))
    #expect(Set(kept.items.map(\.id)) == ["item-1", "item-2"])
    #expect(kept.items.allSatisfy { $0.modifiers.map(\.name) == ["milk"] })
    // The row's links and numbers are where SwiftData has them.
    let links = """
      SELECT i.Z_ENT, i.Z_PK, i.Z3ITEMS, m.Z_ENT AS e, m.Z1MODIFIERS, k.Z_MAX
      FROM ZCARTITEMMODEL AS i JOIN ZCARTITEMMODIFIERMODEL AS m ON m.Z1MODIFIERS = i.Z_PK
      JOIN Z_PRIMARYKEY AS k ON k.Z_ENT = i.Z_ENT ORDER BY i.Z_PK
      """
    let items = try rows(links, in: path)
    #expect(items == ["1 1 1 2 1 2", "1 2 1 2 2 2"])

    again.delete(kept)
    try again.save()
    try reopened.close()
    #expect(try rows(links, in: path).isEmpty)
    #expect(try rows("SELECT * FROM ZCARTITEMMODIFIERMODEL", in: path).isEmpty)
  }

  @Test("a second cart of the same id takes the place of the one SwiftData wrote")
  func uniqueCart() throws {
    let path = try #require(
      try RealStores.copy("Karim-ezzedine__CartKit__CartKitSwiftData_v1.sqlite", to: folder))
    let container = try container(Carts.self, path)
    let context = ModelContext(container)
    context.insert(
      Carts.CartModel(
        id: "31D0046D-3C85-410E-BBB0-141FC0105E06", storeId: "store-new", status: "active",
        createdAt: Date(timeIntervalSinceReferenceDate: 0)))
    try context.save()
    try container.close()
    let carts = try rows("SELECT Z_PK, ZSTOREID FROM ZCARTMODEL", in: path)
    #expect(carts == ["1 store-new"])
  }

  @Test("Core Data's users are read in order, changed, added to and deleted, and opened again")
  func users() throws {
    let path = try #require(
      try RealStores.copy("alemar11__CoreDataPlus__SampleModel3_V1.sqlite", to: folder))
    let container = try container(Pets.self, path)
    let context = ModelContext(container)
    let byPet = FetchDescriptor<Pets.User>(sortBy: [SortDescriptor(\.petName)])
    let users = try context.fetch(byPet)
    #expect(users.count == 12)
    #expect(users.first?.petName == "Dog_0_0" && users.last?.petName == "Dog_2_3")
    let ones = try context.fetchCount(
      FetchDescriptor<Pets.User>(predicate: #Predicate { $0.name == "User_1" }))
    #expect(ones == 4)

    users.first?.petName = "Cat"
    users.last.map(context.delete)
    context.insert(Pets.User(name: "User_3", petName: "Owl"))
    try context.save()
    try container.close()

    let reopened = try self.container(Pets.self, path)
    let names = try ModelContext(reopened).fetch(byPet).map(\.petName)
    #expect(names.count == 12)
    #expect(names.first == "Cat" && names.last == "Owl" && !names.contains("Dog_2_3"))
    try reopened.close()
    // The changed row counts one change more; the new one has the next number.
    let changed = try rows(
      "SELECT Z_PK, Z_ENT, Z_OPT FROM ZUSER WHERE ZPETNAME IN ('Cat', 'Owl') ORDER BY Z_PK",
      in: path)
    #expect(changed == ["4 1 2", "13 1 1"])
    #expect(try rows("SELECT Z_MAX FROM Z_PRIMARYKEY", in: path) == ["13"])
  }
}
