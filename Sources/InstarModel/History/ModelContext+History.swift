import InstarSchema

/// The history of changes that saves keep in a store.
extension ModelContext {
  /// Returns the transactions that match a descriptor, the earliest first.
  ///
  /// Each save writes a transaction into a store that has the tables of persistent history: one that SwiftData created,
  /// Core Data with history tracking, or Instar. Pending changes are not in the history. Source of the semantics:
  /// Apple's article "Fetching and filtering time-based model changes".
  ///
  /// - Throws: `SwiftDataError.historyTokenExpired` if the predicate asks for transactions after a token, and some of
  ///   them were deleted, or the store was replaced by an earlier copy; `unsupported` for a plain store, a store
  ///   without history tables, and another type than `DefaultHistoryTransaction`; `sqlFailed`.
  public func fetchHistory<T: HistoryTransaction>(_ descriptor: HistoryDescriptor<T>) throws -> [T]
  {
    try failingStage {
      let own = try Self.own(descriptor)
      let found = try HistoryReader(stores, own, "cannot fetch").transactions()
      return found.compactMap { $0 as? T }
    }
  }

  /// Deletes the transactions that match a descriptor, all if it has no predicate. Models are not changed.
  ///
  /// Delete what every reader has processed, because a later fetch after an older token throws.
  ///
  /// - Throws: `unsupported` as `fetchHistory(_:)`; `unreadableStore` if a configuration does not allow saving;
  ///   `storeChanged`; `sqlFailed`. The store that failed is then unchanged.
  public func deleteHistory<T: HistoryTransaction>(_ descriptor: HistoryDescriptor<T>) throws {
    try failingStage {
      let own = try Self.own(descriptor)
      if let store = stores.all.first(where: { !$0.allowsSave }) {
        throw InstarError(
          .unreadableStore, "cannot delete the history of \(store.place)",
          cause: "the store's configuration does not allow saving", state: "unchanged",
          next: "open the store with allowsSave: true")
      }
      try HistoryReader(stores, own, "cannot delete").deleteTransactions()
    }
  }

  private static func own<T>(
    _ descriptor: HistoryDescriptor<T>
  ) throws -> HistoryDescriptor<DefaultHistoryTransaction> {
    if let own = descriptor as? HistoryDescriptor<DefaultHistoryTransaction> { return own }
    throw InstarError(
      .unsupported, "cannot fetch history as \(T.self)",
      cause: "Instar has no custom data stores",
      next: "use HistoryDescriptor<DefaultHistoryTransaction>")
  }
}
