/// The folder beside a store with the files of its runs and its backups.
package enum InstarFolder {
  package static let name = ".instar"

  package static func path(besideStore store: String) -> String { store.sibling(name) }
}
