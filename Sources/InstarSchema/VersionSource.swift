/// Where a plain store declares its version, and where Instar writes it after a run.
@frozen
public enum VersionSource: Sendable, Hashable, Codable {
  /// `PRAGMA user_version`: a number, see `Schema.Version.userVersion`. 0 means none.
  case userVersion
  /// The one row of a table: "1.2.0", or a number as in `PRAGMA user_version`.
  case table(String, column: String)
}

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

  public var tool: Tool
  /// The tool's name of the version.
  public var name: String

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

extension Schema.Version {
  /// The version as a number for `PRAGMA user_version`: 2 for 2.0.0, 10203 for 1.2.3; `nil` if it has no such number.
  public var userVersion: Int32? {
    guard major >= 0, minor >= 0, patch >= 0 else { return nil }
    if minor == 0, patch == 0 { return (1..<10_000).contains(major) ? Int32(major) : nil }
    guard (1..<200_000).contains(major), minor < 100, patch < 100 else { return nil }
    return Int32(major * 10_000 + minor * 100 + patch)
  }

  /// The version that a number in `PRAGMA user_version` means; `nil` for 0, which means none.
  public init?(userVersion number: Int64) {
    guard number > 0, number <= Int64(Int32.max) else { return nil }
    let number = Int(number)
    if number < 10_000 {
      self.init(number, 0, 0)
    } else {
      self.init(number / 10_000, number / 100 % 100, number % 100)
    }
  }
}

extension StoreIdentity {
  /// Returns the identity with the version from the plan's source, else with the version that the plan maps a tool's
  /// version to.
  public func seen(
    from source: VersionSource, importing imported: [ToolVersion: Schema.Version]
  ) -> StoreIdentity {
    guard format == .plain else { return self }
    var seen = self
    let mapped = Set(toolVersions.compactMap { imported[$0] })
    seen.version = declaredVersions[source] ?? (mapped.count == 1 ? mapped.first : nil)
    return seen
  }
}
