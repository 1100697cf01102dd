/// How a schema maps to tables in SQLite.
@frozen
public enum StoreFormat: String, Sendable, Codable, Hashable {
  /// The tables that SwiftData and Core Data write.
  case coredata
  /// Ordinary tables.
  case plain
}
