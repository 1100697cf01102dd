public import GRDB
public import InstarSchema

/// The model that Core Data archives in a store.
///
/// It is in `Z_MODELCACHE`. Stores of frameworks before 2015 have none; see "Core Data layout", section 2.5.
public struct CoreDataModel: Sendable, Hashable {
  /// The schema, complete as far as tables and columns depend on it. Its version is the model's single identifier if
  /// that is a version, else 1.0.0.
  public var schema: Schema

  /// What a schema does not hold, by entity name.
  public var details: [String: EntityDetails]

  /// What the model holds about an entity beyond its schema.
  public struct EntityDetails: Sendable, Hashable {
    /// Fetched properties, which are not stored.
    public var fetchedProperties: [String] = []
    /// Relationships that are not stored.
    public var transientRelationships: [String] = []
    /// What the archive holds and a schema cannot express, one sentence each.
    public var notes: [String] = []
  }
}

extension CoreDataModel {
  /// The most bytes of an archive, packed or unpacked. The models of the largest apps have far fewer.
  static let archiveLimitBytes = 4 << 20

  /// Reads the model of a store.
  ///
  /// - Returns: `nil` where the store has none: an old one, or one with an empty cache.
  /// - Throws: `corruptStore` where the model cannot be read or takes too much work; else the database's error. Nothing
  ///   is written.
  public static func read(_ db: Database) throws(InstarError) -> CoreDataModel? {
    let packed: [UInt8]
    do {
      guard try db.tableExists("Z_MODELCACHE"),
        let row = try Row.fetchOne(
          db,
          sql: """
            SELECT length(Z_CONTENT),
                   CASE WHEN length(Z_CONTENT) <= \(archiveLimitBytes) THEN Z_CONTENT END
            FROM Z_MODELCACHE LIMIT 1
            """)
      else { return nil }
      guard let length: Int = row.get(0), length > 0 else { return nil }
      guard length <= archiveLimitBytes else {
        throw unreadable(
          "the archived model has \(length) bytes; Instar reads at most \(archiveLimitBytes)")
      }
      guard case .blob(let data)? = (row[1] as DatabaseValue?)?.storage else {
        throw unreadable("the archived model is not a blob")
      }
      packed = Array(data)
    } catch {
      throw InstarError(error, what: what)
    }
    let archive: [UInt8]
    do {
      archive = try DeflateReader.bytes(of: packed, limit: archiveLimitBytes)
    } catch {
      throw switch error {
      case .truncated: unreadable("the compressed model is truncated")
      case .malformed: unreadable("the compressed model is damaged")
      case .tooLarge:
        unreadable("the compressed model expands to more than \(archiveLimitBytes) bytes")
      }
    }
    return try CoreDataModel(archive: archive)
  }

  /// Reads an unpacked archive, which is also the content of a compiled model file (`.mom`).
  ///
  /// - Throws: `corruptStore`.
  public init(archive: [UInt8]) throws(InstarError) {
    do {
      var reader = try ModelArchiveReader(archive)
      self = try reader.model()
    } catch {
      throw switch error {
      case .malformed: Self.unreadable("the archived model is damaged")
      case .exhausting: Self.unreadable("the archived model takes too much work to read")
      }
    }
  }

  private static let what = "cannot read the model of the store"

  private static func unreadable(_ cause: String) -> InstarError {
    InstarError(.corruptStore, what, cause: cause)
  }
}
