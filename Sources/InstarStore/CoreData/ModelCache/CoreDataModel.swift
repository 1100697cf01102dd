public import GRDB
public import InstarSchema

/// The model that a store of the format `coredata` was written with: what Core Data itself knows of it.
///
/// A store carries it, archived, in `Z_MODELCACHE`. Stores of frameworks before 2015 have none; see
/// "Core Data layout", section 2.5.
public struct CoreDataModel: Sendable, Hashable, Codable {
  /// All entities with what tables and columns are laid out by. Its version is the model's, where the model has one
  /// identifier that is a version; else 1.0.0.
  public var schema: Schema

  /// What names the model's version, in the app's words: `["1.0.0"]`, `["2"]`, `[""]` where it has no name.
  public var versionIdentifiers: [String]

  /// The names of the entities of each configuration, where the model has any.
  public var configurations: [String: [String]]

  /// What no schema says of an entity, by its name.
  public var details: [String: EntityDetails]

  /// What the model says of an entity beyond its schema.
  public struct EntityDetails: Sendable, Hashable, Codable {
    /// The class of its objects in the app; `nil` where it is the framework's own.
    public var className: String?
    /// Properties that are fetched each time and not stored.
    public var fetchedProperties: [String] = []
    /// Relationships that are not stored.
    public var transientRelationships: [String] = []
    /// Properties whose values are kept in several columns, and enums.
    public var composites: [Composite] = []
    /// What the archive holds and this reader could not express, a sentence each.
    public var notes: [String] = []
  }

  /// A property of a Codable type that Swift takes apart: a struct or an enum.
  public struct Composite: Sendable, Hashable, Codable {
    /// The name of the property.
    public var property: String
    /// Whether a model may have no value for it.
    public var isOptional: Bool
    /// The names of its fields, in the order of their declaration; of its cases, for an enum without raw value.
    public var elements: [String]
    /// Whether the property is an enum.
    public var isEnumeration: Bool
    /// Its name in the version before, equal to `property` where it was not renamed.
    public var originalName: String
  }
}

extension CoreDataModel {
  /// An archive larger than this, packed or unpacked, is refused: the models of the largest apps come nowhere near.
  static let archiveLimitBytes = 4 << 20

  /// Reads the model of a store.
  ///
  /// - Returns: `nil` where the store carries none: an old one, or one whose cache is empty.
  /// - Throws: `corruptStore` where there is one that cannot be read, or is made to exhaust its reader; else the
  ///   database's error. Nothing is written.
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
        throw unreadable("the archived model has \(length) bytes")
      }
      guard case .blob(let data)? = (row[1] as DatabaseValue?)?.storage else {
        throw unreadable("the archived model is no blob")
      }
      packed = Array(data)
    } catch {
      throw InstarError(error, what: what)
    }
    let archive: [UInt8]
    do {
      archive = try Inflate.bytes(of: packed, limit: archiveLimitBytes)
    } catch {
      throw switch error {
      case .truncated: unreadable("the packed model is cut short")
      case .malformed: unreadable("the packed model is damaged")
      case .tooLarge: unreadable("the model unpacks to more than \(archiveLimitBytes) bytes")
      }
    }
    return try CoreDataModel(archive: archive)
  }

  /// The model in an archive, unpacked: what also a compiled model file (`.mom`) holds.
  ///
  /// - Throws: `corruptStore`.
  public init(archive: [UInt8]) throws(InstarError) {
    do {
      var reader = try ModelArchiveReader(archive)
      self = try reader.model()
    } catch {
      throw switch error {
      case .malformed: Self.unreadable("the archived model is damaged")
      case .exhausting: Self.unreadable("the archived model is made to exhaust its reader")
      }
    }
  }

  private static let what = "cannot read the model of the store"

  private static func unreadable(_ cause: String) -> InstarError {
    InstarError(.corruptStore, what, cause: cause)
  }
}
