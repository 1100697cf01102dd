package import GRDB
package import InstarStore

/// The store as it was before the stages, for the keys that an error names.
package struct EarlierStore {
  /// Of the store's version.
  let layout: any StoreLayout
  /// Opens the store, or the copy that becomes its backup, and calls its argument.
  let read: ((Database) throws -> Void) throws -> Void

  package init(
    layout: any StoreLayout, read: @escaping ((Database) throws -> Void) throws -> Void
  ) {
    self.layout = layout
    self.read = read
  }
}
