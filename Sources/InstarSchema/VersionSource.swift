/// Where a plain store declares its version, and where Instar writes it after a run.
@frozen
public enum VersionSource: Sendable, Hashable, Codable {
  /// `PRAGMA user_version`: a number, see `Schema.Version.userVersion`. 0 means none.
  case userVersion
  /// The one row of a table: "1.2.0", or a number as in `PRAGMA user_version`.
  case table(String, column: String)

  /// The name of the table; `nil` where the version is in no table.
  package var tableName: String? {
    guard case .table(let name, _) = self else { return nil }
    return name
  }
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
    guard !format.hasMetadata else { return self }
    var seen = self
    let mapped = Set(toolVersions.compactMap { imported[$0] })
    seen.version = declaredVersions[source] ?? (mapped.count == 1 ? mapped.first : nil)
    return seen
  }
}
