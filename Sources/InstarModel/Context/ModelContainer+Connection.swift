package import InstarStore

extension ModelContainer {
  /// The connection all contexts of this container share: for tests that look at the statements.
  package var connection: StoreConnection { store.connection }
}
