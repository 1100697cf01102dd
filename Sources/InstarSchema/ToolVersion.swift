/// The version of a store in the history table of a migration tool.
///
/// A plan maps these to its versions with `importedVersions`. Instar reads them if the store declares no version
/// itself, and never writes them: the tool would not notice a run.
public struct ToolVersion: Sendable, Hashable, Codable {
  /// The tools whose tables Instar reads.
  @frozen
  public enum Tool: String, Sendable, Hashable, Codable, CaseIterable {
    case alembic, django
    case golangMigrate = "golang-migrate"
    case grdb, room
  }

  /// The tool that wrote the version.
  public var tool: Tool
  /// The tool's name of the version.
  public var name: String

  /// A version by the name that a tool gave it.
  public init(tool: Tool, name: String) {
    self.tool = tool
    self.name = name
  }

  /// A revision in `alembic_version`.
  public static func alembic(_ revision: String) -> ToolVersion {
    ToolVersion(tool: .alembic, name: revision)
  }
  /// The last migration of an app in `django_migrations`.
  public static func django(app: String, _ migration: String) -> ToolVersion {
    ToolVersion(tool: .django, name: "\(app).\(migration)")
  }
  /// The number in golang-migrate's `schema_migrations`; `dirty` versions are ignored.
  public static func golangMigrate(_ number: Int64) -> ToolVersion {
    ToolVersion(tool: .golangMigrate, name: "\(number)")
  }
  /// The last identifier in `grdb_migrations`.
  public static func grdb(_ identifier: String) -> ToolVersion {
    ToolVersion(tool: .grdb, name: identifier)
  }
  /// The identity hash in `room_master_table`.
  public static func room(identityHash: String) -> ToolVersion {
    ToolVersion(tool: .room, name: identityHash)
  }
}

extension ToolVersion: CustomStringConvertible {
  /// "alembic ae1027a6acf".
  public var description: String { "\(tool.rawValue) \(name)" }
}
