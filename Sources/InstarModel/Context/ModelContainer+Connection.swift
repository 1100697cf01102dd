package import InstarStore

extension ModelContainer {
  /// The connection of the first store, which all contexts of this container share. Tests read its statements.
  package var connection: StoreConnection { stores.all[0].connection }
}
