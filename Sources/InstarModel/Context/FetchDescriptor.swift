public import Foundation

/// What to fetch, in which order, and how many.
public struct FetchDescriptor<T: PersistentModel> {
  /// Only models for which it is true; `nil` for all.
  public var predicate: Predicate<T>?
  /// The order, by the first that tells two models apart; none where it is empty.
  public var sortBy: [SortDescriptor<T>]
  /// How many models at most; `nil` for all.
  public var fetchLimit: Int?
  /// How many models of the order to leave out at its start.
  public var fetchOffset: Int?
  /// Whether models that were inserted, changed or deleted but not saved are taken as they are in memory.
  public var includePendingChanges = true
  /// The properties whose values are read with the rows; all, where none are named. Another one is read when it is asked for.
  public var propertiesToFetch: [PartialKeyPath<T>] = []
  /// The relationships whose models are read with the rows: by one statement each, however many rows there are.
  public var relationshipKeyPathsForPrefetching: [PartialKeyPath<T>] = []

  /// All models for which the predicate is true, in that order.
  public init(predicate: Predicate<T>? = nil, sortBy: [SortDescriptor<T>] = []) {
    self.predicate = predicate
    self.sortBy = sortBy
  }
}

// Key paths are not Sendable in general; those of models' properties capture nothing.
extension FetchDescriptor: @unchecked Sendable {}
