public import Foundation

// The declarations are those of SwiftData (source: its documentation and public interface, iOS 18 and 26).

/// A position in a store's history. Keep the last one that you processed, and fetch what came later.
public protocol HistoryToken: Codable, Comparable, Hashable, Identifiable, Sendable {
  associatedtype TokenType: Codable, Hashable, Sendable
  /// The content of the token.
  var tokenValue: TokenType? { get }
}

/// The changes of one save.
public protocol HistoryTransaction: Hashable, Identifiable, Sendable {
  associatedtype TokenType: Comparable, Hashable, Identifiable, Sendable
  associatedtype TransactionIdentifier: Comparable, Hashable, Sendable

  /// When the save was made.
  var timestamp: Date { get }
  /// The changes, in the order in which they were written.
  var changes: [HistoryChange] { get }
  /// The position of the transaction.
  var token: TokenType { get }
  /// The number of the transaction in its store.
  var transactionIdentifier: TransactionIdentifier { get }
  /// The identifier of the store.
  var storeIdentifier: String { get }
  /// The `author` of the context that saved.
  var author: String? { get }
}

/// The insertion of a model.
public protocol HistoryInsert<Model>: Sendable {
  associatedtype Model: PersistentModel
  associatedtype TransactionIdentifier: Comparable, Hashable, Sendable
  associatedtype ChangeIdentifier: Comparable, Hashable, Sendable

  /// The number of the change in its store.
  var changeIdentifier: ChangeIdentifier { get }
  /// The number of the transaction.
  var transactionIdentifier: TransactionIdentifier { get }
  /// The model.
  var changedPersistentIdentifier: PersistentIdentifier { get }
}

/// A change of a model's properties.
public protocol HistoryUpdate<Model>: Sendable {
  associatedtype Model: PersistentModel
  associatedtype TransactionIdentifier: Comparable, Hashable, Sendable
  associatedtype ChangeIdentifier: Comparable, Hashable, Sendable
  typealias PropertyUpdate = PartialKeyPath<Model> & Sendable

  /// The number of the change in its store.
  var changeIdentifier: ChangeIdentifier { get }
  /// The number of the transaction.
  var transactionIdentifier: TransactionIdentifier { get }
  /// The model.
  var changedPersistentIdentifier: PersistentIdentifier { get }
  /// The properties that the save wrote.
  var updatedAttributes: [any PartialKeyPath<Model> & Sendable] { get }
}

/// The deletion of a model.
public protocol HistoryDelete<Model>: Sendable {
  associatedtype Model: PersistentModel
  associatedtype TransactionIdentifier: Comparable, Hashable, Sendable
  associatedtype ChangeIdentifier: Comparable, Hashable, Sendable

  /// The number of the change in its store.
  var changeIdentifier: ChangeIdentifier { get }
  /// The number of the transaction.
  var transactionIdentifier: TransactionIdentifier { get }
  /// The model, which no longer exists.
  var changedPersistentIdentifier: PersistentIdentifier { get }
  /// The preserved values of the model.
  var tombstone: HistoryTombstone<Model> { get }
}

/// One change of a transaction.
///
/// ```swift
/// switch change {
/// case .insert(let insert as DefaultHistoryInsert<Trip>): …
/// case .delete(let delete as DefaultHistoryDelete<Trip>): delete.tombstone[\.name]
/// default: break
/// }
/// ```
// Frozen, so that a `switch` over the three cases needs no `@unknown default` in the Swift 6 mode.
@frozen
public enum HistoryChange: Sendable {
  case insert(any HistoryInsert)
  case update(any HistoryUpdate)
  case delete(any HistoryDelete)

  /// The model that was changed.
  public var changedPersistentIdentifier: PersistentIdentifier {
    switch self {
    case .insert(let insert): insert.changedPersistentIdentifier
    case .update(let update): update.changedPersistentIdentifier
    case .delete(let delete): delete.changedPersistentIdentifier
    }
  }
}

/// Which transactions to fetch or delete, in which order, and how many.
///
/// ```swift
/// var descriptor = HistoryDescriptor<DefaultHistoryTransaction>()
/// descriptor.predicate = #Predicate { $0.token > token && $0.author == "widget" }
/// ```
public struct HistoryDescriptor<TransactionType: HistoryTransaction> {
  /// The condition; `nil` for all transactions.
  public var predicate: Predicate<TransactionType>?
  /// The most transactions; 0 for all.
  public var fetchLimit: UInt64 = 0
  /// The order; empty for that of the transactions.
  public var sortBy: [SortDescriptor<TransactionType>]

  /// Creates a descriptor for the transactions that match a predicate.
  public init(
    predicate: Predicate<TransactionType>? = nil, sortBy: [SortDescriptor<TransactionType>] = []
  ) {
    self.predicate = predicate
    self.sortBy = sortBy
  }
}
