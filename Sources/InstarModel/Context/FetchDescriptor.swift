public import Foundation

/// Describes a fetch: the condition, the order, and how many models.
public struct FetchDescriptor<T: PersistentModel> {
  /// The condition on models; `nil` for all.
  public var predicate: Predicate<T>?
  /// The order; later descriptors decide between models that are equal by the earlier ones. Empty for any order.
  public var sortBy: [SortDescriptor<T>]
  /// The maximum number of models; `nil` for all.
  public var fetchLimit: Int?
  /// How many models to skip at the start of the order.
  public var fetchOffset: Int?
  /// Whether the fetch includes inserted models, uses the changed values, and leaves out deleted models before they are
  /// saved.
  public var includePendingChanges = true
  /// The properties to read with the rows; empty for all. The others are read at the first access.
  public var propertiesToFetch: [PartialKeyPath<T>] = []
  /// The relationships whose models to read too, with one statement for each relationship.
  public var relationshipKeyPathsForPrefetching: [PartialKeyPath<T>] = []

  /// Creates a descriptor for the models that match the predicate, in this order.
  public init(predicate: Predicate<T>? = nil, sortBy: [SortDescriptor<T>] = []) {
    self.predicate = predicate
    self.sortBy = sortBy
  }
}

// Key paths are not Sendable in general, but those of models' properties capture nothing.
extension FetchDescriptor: @unchecked Sendable {}
