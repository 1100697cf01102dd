public import Foundation

/// The changes of one save to a store of the format `coredata`.
public struct DefaultHistoryTransaction: HistoryTransaction {
  /// Transactions of a store are numbered.
  public typealias TransactionIdentifier = Int64
  /// A position in the history of all stores of a container.
  public typealias TokenType = DefaultHistoryToken

  /// When the save was made.
  public let timestamp: Date
  /// The changes, in the order in which they were written.
  public internal(set) var changes: [HistoryChange] = []
  /// The position of the transaction.
  public let token: DefaultHistoryToken
  /// The number of the transaction in its store.
  public let transactionIdentifier: Int64
  /// The identifier of the store.
  public let storeIdentifier: String
  /// The bundle of the program that saved; on Linux the program's name. Empty if the store does not have it.
  public let bundleIdentifier: String
  /// The name of the process that saved; "instar-worker" for the closures of a stage. Empty if the store has none.
  public let processIdentifier: String
  /// The `author` of the context that saved.
  public let author: String?

  /// The number of the transaction in its store.
  public var id: Int64 { transactionIdentifier }

  /// Compares store and number.
  public static func == (left: DefaultHistoryTransaction, right: DefaultHistoryTransaction) -> Bool
  {
    left.transactionIdentifier == right.transactionIdentifier
      && left.storeIdentifier == right.storeIdentifier
  }

  /// Hashes store and number, which `==` compares.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(transactionIdentifier)
    hasher.combine(storeIdentifier)
  }
}

/// A position in the history of a container's stores.
///
/// Later transactions have greater tokens. A token is Codable, so an app can keep it between its runs.
public struct DefaultHistoryToken: HistoryToken {
  /// The number of the last transaction, by store.
  public typealias TokenType = [String: Int64]

  /// For each store, by its identifier, the number of the last transaction.
  public let tokenValue: [String: Int64]?

  init(_ numbers: [String: Int64]) { tokenValue = numbers }

  /// The sum of the numbers.
  public var id: Int { Int(truncatingIfNeeded: numbers.values.reduce(0, &+)) }

  var numbers: [String: Int64] { tokenValue ?? [:] }

  /// Compares the numbers store by store, in the order of their identifiers; a missing one counts as 0.
  public static func < (left: DefaultHistoryToken, right: DefaultHistoryToken) -> Bool {
    let (one, two) = (left.numbers, right.numbers)
    for store in Set(one.keys).union(two.keys).sorted() {
      let (first, second) = (one[store] ?? 0, two[store] ?? 0)
      if first != second { return first < second }
    }
    return false
  }
}

/// The insertion of a model.
public struct DefaultHistoryInsert<Model: PersistentModel>: HistoryInsert, Hashable {
  /// Transactions of a store are numbered.
  public typealias TransactionIdentifier = Int64
  /// Changes of a store are numbered.
  public typealias ChangeIdentifier = Int64

  /// The number of the change in its store.
  public let changeIdentifier: Int64
  /// The number of the transaction.
  public let transactionIdentifier: Int64
  /// The model.
  public let changedPersistentIdentifier: PersistentIdentifier
}

/// A change of a model's properties.
public struct DefaultHistoryUpdate<Model: PersistentModel>: HistoryUpdate, Hashable {
  /// Transactions of a store are numbered.
  public typealias TransactionIdentifier = Int64
  /// Changes of a store are numbered.
  public typealias ChangeIdentifier = Int64
  /// The key path of a property that was written.
  public typealias PropertyUpdate = PartialKeyPath<Model> & Sendable

  /// The number of the change in its store.
  public let changeIdentifier: Int64
  /// The number of the transaction.
  public let transactionIdentifier: Int64
  /// The model.
  public let changedPersistentIdentifier: PersistentIdentifier
  /// The properties that the save wrote, attributes and relationships, without inherited ones. Empty if a migration
  /// changed the entity's properties since.
  public let updatedAttributes: [any PartialKeyPath<Model> & Sendable]

  /// Compares number and model. Key paths are left out: they follow from these.
  public static func == (left: DefaultHistoryUpdate, right: DefaultHistoryUpdate) -> Bool {
    left.changeIdentifier == right.changeIdentifier
      && left.changedPersistentIdentifier == right.changedPersistentIdentifier
  }

  /// Hashes what `==` compares.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(changeIdentifier)
    hasher.combine(changedPersistentIdentifier)
  }
}

/// The deletion of a model.
public struct DefaultHistoryDelete<Model: PersistentModel>: HistoryDelete, Hashable {
  /// Transactions of a store are numbered.
  public typealias TransactionIdentifier = Int64
  /// Changes of a store are numbered.
  public typealias ChangeIdentifier = Int64

  /// The number of the change in its store.
  public let changeIdentifier: Int64
  /// The number of the transaction.
  public let transactionIdentifier: Int64
  /// The model, which no longer exists.
  public let changedPersistentIdentifier: PersistentIdentifier
  /// The values of the attributes with `.preserveValueOnDeletion`.
  public let tombstone: HistoryTombstone<Model>

  /// Compares number and model. The tombstone is left out: it follows from these.
  public static func == (left: DefaultHistoryDelete, right: DefaultHistoryDelete) -> Bool {
    left.changeIdentifier == right.changeIdentifier
      && left.changedPersistentIdentifier == right.changedPersistentIdentifier
  }

  /// Hashes what `==` compares.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(changeIdentifier)
    hasher.combine(changedPersistentIdentifier)
  }
}
