public import GRDB
public import InstarSchema

/// What a store tells of its schema.
public struct StoreIntrospection: Sendable {
  /// Where it was found.
  public enum Origin: Sendable, Hashable {
    /// The archived model in `Z_MODELCACHE`.
    case modelCache
    /// The tables alone.
    case tables
  }

  public var origin: Origin
  /// Of the version that the store declares, or 1.0.0.
  public var schema: Schema
  /// What of the store the schema does not say, one sentence each.
  public var notes: [String]

  /// Reads the schema of a store that is open and was probed.
  ///
  /// - Throws: the database's error; nothing is written in any case.
  public static func read(_ db: Database, _ probe: StoreProbe) throws -> StoreIntrospection {
    let version = probe.identity.version ?? Schema.Version(1, 0, 0)
    switch probe.identity.format {
    case .coredata:
      var tables = try CoreDataIntrospection(db, probe)
      return try tables.read(version: version)
    case .plain:
      throw InstarError(
        .unsupported, "cannot read the schema of the store",
        cause: "it has ordinary tables, not those of Core Data")
    }
  }
}
