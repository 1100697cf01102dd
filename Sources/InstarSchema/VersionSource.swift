/// Where a plain store says which version it is at, and where that is written after a run.
@frozen
public enum VersionSource: Sendable, Hashable, Codable {
  /// `PRAGMA user_version`: a number, see `Schema.Version.userVersion`. 0 stands for none.
  case userVersion
  /// The one row of a table: "1.2.0", or a number as in `PRAGMA user_version`.
  case table(String, column: String)
}

/// What the history table of a migration tool says of a store.
///
/// A plan maps these to its versions with `importedVersions`. They are read where the store does not declare a version
/// itself, and never written: the tool does not learn of a run.
public struct ToolVersion: Sendable, Hashable, Codable {
  /// The tools whose tables are known.
  @frozen
  public enum Tool: String, Sendable, Hashable, Codable, CaseIterable {
    case alembic, django
    case golangMigrate = "golang-migrate"
    case grdb, room
  }

  public var tool: Tool
  /// What the tool calls the version.
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
  /// The number in golang-migrate's `schema_migrations`; one that is marked dirty is none.
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
  /// The version as the number of `PRAGMA user_version`: 2 for 2.0.0, 10203 for 1.2.3. `nil` where it has no such number.
  public var userVersion: Int32? {
    guard major >= 0, minor >= 0, patch >= 0 else { return nil }
    if minor == 0, patch == 0 { return (1..<10_000).contains(major) ? Int32(major) : nil }
    guard (1..<200_000).contains(major), minor < 100, patch < 100 else { return nil }
    return Int32(major * 10_000 + minor * 100 + patch)
  }

  /// The version that a number of `PRAGMA user_version` stands for; `nil` for 0, which stands for none.
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
  /// The identity with the version that a plan sees: the one at its source, else the one that it maps a tool's to.
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
