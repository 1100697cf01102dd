/// The files that SQLite keeps beside a store. Their names are that of the store and a suffix.
package enum SideFile: String, Sendable, CaseIterable {
  /// The write-ahead log.
  case log = "-wal"
  /// The index of the log, which connections share as memory.
  case index = "-shm"
  /// The rollback journal.
  case journal = "-journal"

  /// - Parameter store: The path of the store, or its name.
  package func path(of store: String) -> String { store + rawValue }

  package static func paths(of store: String) -> [String] { allCases.map { $0.path(of: store) } }
}
