// Outside of `StoreFormat+Operations.swift`, code asks these properties or a layout, and tests no format.

/// How a schema maps to tables in SQLite.
@frozen
public enum StoreFormat: String, Sendable, Codable, Hashable {
  /// The tables that SwiftData and Core Data write.
  case coredata
  /// Ordinary tables.
  case plain

  /// The format of the store of a phase record: only the record of a store without metadata names a source.
  public init(ofRecordWith source: VersionSource?) {
    self = source == nil ? .coredata : .plain
  }

  /// Whether a store has metadata, where it declares its version and fingerprint. Any other store declares its version
  /// where its plan says, and has no fingerprint.
  public var hasMetadata: Bool { self == .coredata }

  /// Whether a store lists the entities of its schema. In any other store its tables stand for them.
  public var listsEntities: Bool { self == .coredata }

  /// Whether a store may have tables, columns and indexes that no version of its plan describes: they belong to the
  /// app, and survive a migration.
  public var allowsOtherTables: Bool { self == .plain }

  /// Whether columns keep decimals as numbers, and not as text.
  public var keepsDecimalsAsNumbers: Bool { self == .coredata }
}
