public import Foundation

/// What to fetch, in which order, and how many.
public struct FetchDescriptor<T: PersistentModel> {
  /// Only models for which it is true; `nil` for all.
  public var predicate: Predicate<T>?
  public var sortBy: [SortDescriptor<T>]
  public var fetchLimit: Int?
  public var fetchOffset: Int?
  /// Whether models that were inserted, changed or deleted but not saved are taken as they are in memory.
  public var includePendingChanges = true

  public init(predicate: Predicate<T>? = nil, sortBy: [SortDescriptor<T>] = []) {
    self.predicate = predicate
    self.sortBy = sortBy
  }
}
