public import Foundation
public import GRDB
public import InstarSchema

/// What a store of the format `coredata` says of itself: the one row of `Z_METADATA`.
///
/// The row holds the store's identifier and a binary property list. The list is open: an app may
/// keep keys of its own in it (`setMetadata(_:for:)`), and they are kept. The keys that Instar
/// reads and writes, and how their values come about, were read off stores written by Apple's
/// frameworks.
public struct CoreDataMetadata {
  /// `Z_UUID`: made with the store, kept through every migration.
  public var uuid: String

  /// Everything the property list holds.
  public private(set) var plist: [String: Any]

  /// Whether the archived model of `Z_MODELCACHE` belongs to another schema than these values, so
  /// that `write` has to delete it.
  private var modelCacheIsStale = false
  /// What `write` puts in its place, where the archived model of the version is known.
  private var newModelCache: Data?

  /// Metadata of a store that is being made.
  ///
  /// Entities get hashes of Instar's own (see `stamp`), because Apple's are not documented.
  public init(newStoreFor schema: Schema) {
    self.uuid = UUID().uuidString
    self.plist = [
      Key.storeType: "SQLite",
      Key.hashesVersion: Self.hashesVersion,
      Key.frameworkVersion: Self.frameworkVersion,
      Key.autoVacuumLevel: "2",
      Key.maker: true,
      // Present, so that `stamp` computes them.
      Key.digest: "",
      Key.checksum: "",
    ]
    stamp(schema: schema, unchangedEntities: [], fingerprint: nil)
  }

  /// The version the store declares; `nil` where it declares none, several, or one that is not of
  /// the form 1.2.3.
  ///
  /// What a plan calls a version may be another thing than what the app calls it: a store that got
  /// its hashes from a reference store says both. The plan's holds as long as the hashes do.
  public var version: Schema.Version? {
    if let own = plist[Key.version] as? [String: Any], let text = own["version"] as? String,
      own["checksum"] as? String == Self.checksum(of: entityHashes).base64EncodedString()
    {
      return Schema.Version(text)
    }
    guard let identifiers = plist[Key.identifiers] as? [String], identifiers.count == 1 else {
      return nil
    }
    return Schema.Version(identifiers[0])
  }

  /// The hash of each entity by the entity's name; empty where the store declares none.
  public var entityHashes: [String: Data] {
    guard let hashes = plist[Key.hashes] as? [String: Any] else { return [:] }
    return hashes.compactMapValues { $0 as? Data }
  }

  /// The version of the framework that made the store; `nil` where it does not say.
  public var frameworkVersion: Int? {
    plist[Key.frameworkVersion] as? Int
  }

  /// Whether the store was made by Instar, not by Apple's frameworks.
  public var isMadeByInstar: Bool {
    plist[Key.maker] as? Bool ?? false
  }

  /// The structural fingerprint that the store was stamped with, if it was stamped by Instar.
  public var fingerprint: String? {
    plist[Key.fingerprint] as? String
  }

  /// Makes the metadata those of a version: its identifier, its entities' hashes, and what is
  /// derived from the hashes.
  ///
  /// The other keys, and the store's identifier, stay as they are. Digest and checksum are computed
  /// only where the store had them: older frameworks did not write them.
  ///
  /// - Parameters:
  ///   - unchangedEntities: Names of entities that are the same as in the version before. They keep
  ///     their hash, so that Apple's frameworks still know them. The others get a hash of Instar's
  ///     own: SHA-256 over `canonicalText`.
  ///   - fingerprint: The fingerprint of the version's structure.
  public mutating func stamp(
    schema: Schema, unchangedEntities: Set<String>, fingerprint: String?
  ) {
    let before = entityHashes
    var hashes: [String: Data] = [:]
    for entity in schema.entities {
      let kept = unchangedEntities.contains(entity.name) ? before[entity.name] : nil
      hashes[entity.name] = kept ?? Digest.sha256(Self.canonicalText(of: entity).utf8)
    }
    plist[Key.identifiers] = [schema.version.description]
    plist[Key.hashes] = hashes
    if plist[Key.digest] != nil {
      plist[Key.digest] = Self.digest(of: hashes).base64EncodedString()
    }
    if plist[Key.checksum] != nil {
      plist[Key.checksum] = Self.checksum(of: hashes).base64EncodedString()
    }
    plist[Key.version] = nil
    if let fingerprint { plist[Key.fingerprint] = fingerprint }
    plist[Key.schema] = Self.text(of: schema)
    modelCacheIsStale = true
  }

  /// Makes the metadata those of a version, as Apple's frameworks know it: hashes, what is derived
  /// from them, and identifiers are those of a store that they made. The other keys, and the
  /// store's identifier, stay as they are.
  ///
  /// - Parameters:
  ///   - reference: The metadata of a store of that version.
  ///   - modelCache: Its archived model.
  ///   - version: What the plan calls the version.
  ///   - fingerprint: The fingerprint of the version's structure.
  public mutating func stamp(
    like reference: CoreDataMetadata, modelCache: Data?, version: Schema.Version,
    fingerprint: String
  ) {
    for key in [Key.identifiers, Key.hashes, Key.hashesVersion, Key.digest, Key.checksum] {
      plist[key] = reference.plist[key]
    }
    plist[Key.version] = [
      "version": version.description,
      "checksum": Self.checksum(of: entityHashes).base64EncodedString(),
    ]
    plist[Key.fingerprint] = fingerprint
    // The archived model says the same, and Apple's frameworks keep it up.
    if modelCache != nil { plist[Key.schema] = nil }
    modelCacheIsStale = true
    newModelCache = modelCache
  }
}

// MARK: - The schema

extension CoreDataMetadata {
  /// What a schema may take of the property list.
  private static let schemaLimitBytes = 2 << 20

  /// The schema that the store was stamped with. It says what tables do not: the case of names, what is optional, where
  /// keys lead. `nil` where there is none, or it is of other entities than the store declares.
  public var schema: Schema? {
    guard let text = plist[Key.schema] as? String, text.utf8.count <= Self.schemaLimitBytes,
      let schema = try? JSONDecoder().decode(Schema.self, from: Data(text.utf8)),
      Set(schema.entities.map(\.name)) == Set(entityHashes.keys)
    else { return nil }
    return schema
  }

  /// Whether, once stamped, the values say nothing of the schema: it was too large, and no archived model is at hand. The
  /// store then tells what its tables tell.
  public var lacksSchema: Bool { plist[Key.schema] == nil && newModelCache == nil }

  private static func text(of schema: Schema) -> String? {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let data = try? encoder.encode(schema), data.count <= schemaLimitBytes else { return nil }
    return String(data: data, encoding: .utf8)
  }
}

// MARK: - Reading and writing

extension CoreDataMetadata {
  /// A property list larger than this is refused: an app's own keys are small.
  static let plistLimitBytes = 4 << 20

  private static let whatIsRead = "cannot read the metadata of the store"

  /// Reads the metadata of a store.
  ///
  /// - Throws: `corruptStore` when there is no row, no property list, or one that cannot be read;
  ///   else the database's error. Nothing is written.
  public static func read(_ db: Database) throws(InstarError) -> CoreDataMetadata {
    let what = whatIsRead
    let uuid: String
    let blob: Data
    do {
      guard
        let row = try Row.fetchOne(
          db,
          sql: """
            SELECT CASE WHEN length(Z_UUID) <= 1000 THEN Z_UUID END, length(Z_PLIST),
                   CASE WHEN length(Z_PLIST) <= \(plistLimitBytes) THEN Z_PLIST END
            FROM Z_METADATA ORDER BY Z_VERSION LIMIT 1
            """)
      else {
        throw InstarError(.corruptStore, what, cause: "Z_METADATA has no row")
      }
      let columns: [DatabaseValue] = Array(row.databaseValues)
      uuid = String.fromDatabaseValue(columns[0]) ?? ""
      let length = Int.fromDatabaseValue(columns[1]) ?? 0
      guard length > 0 else {
        throw InstarError(.corruptStore, what, cause: "Z_METADATA holds no property list")
      }
      guard length <= plistLimitBytes else {
        throw InstarError(
          .corruptStore, what, cause: "the property list in Z_METADATA has \(length) bytes")
      }
      guard let data = Data.fromDatabaseValue(columns[2]) else {
        throw InstarError(.corruptStore, what, cause: "the property list in Z_METADATA is no blob")
      }
      blob = data
    } catch {
      throw InstarError(error, what: what)
    }
    return try CoreDataMetadata(uuid: uuid, propertyList: blob)
  }

  /// The store's metadata; `nil` where there is none that can be read, as a store may be without. Whether its pages are
  /// sound is another question.
  ///
  /// - Throws: what hindered reading, such as `busyStore`.
  public static func readIfSound(_ db: Database) throws(InstarError) -> CoreDataMetadata? {
    do {
      return try read(db)
    } catch {
      if error.code == .corruptStore { return nil }
      throw error
    }
  }

  /// - Throws: `corruptStore` for what is no property list of a dictionary, binary or XML.
  init(uuid: String, propertyList: Data) throws(InstarError) {
    guard let plist = PropertyListValue.dictionary(propertyList) else {
      throw InstarError(
        .corruptStore, Self.whatIsRead,
        cause: "the property list in Z_METADATA cannot be read")
    }
    self.uuid = uuid
    self.plist = plist
  }

  /// Writes the metadata, in the caller's transaction if there is one.
  ///
  /// After `stamp` this also empties `Z_MODELCACHE`, which holds the archived model of the version
  /// before: an absent cache is something Apple's frameworks know from their older stores, a false
  /// one is not.
  public func write(_ db: Database) throws {
    let blob = try PropertyListSerialization.data(
      fromPropertyList: plist, format: .binary, options: 0)
    try db.execute(
      sql: "UPDATE Z_METADATA SET Z_UUID = ?, Z_PLIST = ? WHERE Z_VERSION = 1",
      arguments: [uuid, blob])
    if db.changesCount == 0 {
      try db.execute(sql: "DELETE FROM Z_METADATA")
      try db.execute(
        sql: "INSERT INTO Z_METADATA (Z_VERSION, Z_UUID, Z_PLIST) VALUES (1, ?, ?)",
        arguments: [uuid, blob])
    }
    if modelCacheIsStale, try db.tableExists("Z_MODELCACHE") {
      try db.execute(sql: "DELETE FROM Z_MODELCACHE")
      if let newModelCache {
        try db.execute(
          sql: "INSERT INTO Z_MODELCACHE (Z_CONTENT) VALUES (?)", arguments: [newModelCache])
      }
    }
  }
}

// MARK: - What conventions are read off

extension CoreDataMetadata {
  /// A property list that says just so much of who made a store.
  package static func propertyList(frameworkVersion: Int?, isMadeByInstar: Bool) throws -> Data {
    var plist: [String: Any] = [Key.maker: isMadeByInstar]
    if let frameworkVersion { plist[Key.frameworkVersion] = frameworkVersion }
    return try PropertyListSerialization.data(fromPropertyList: plist, format: .binary, options: 0)
  }
}

// MARK: - Hashes

extension CoreDataMetadata {
  /// The text that Instar's own hash of an entity is made from.
  ///
  /// It holds what Core Data's own hash is sensitive to, and leaves out what that leaves out:
  /// default values, delete rules, indexes and earlier names.
  public static func canonicalText(of entity: Schema.Entity) -> String {
    var lines = ["entity \(entity.name)"]
    if let superentity = entity.superentityName { lines.append("super \(superentity)") }
    for attribute in entity.attributes.sorted(by: { $0.name < $1.name }) {
      lines.append(
        "attribute \(attribute.name) \(attribute.type.rawValue)"
          + (attribute.isOptional ? " optional" : "")
          + (attribute.hashModifier.map { " modifier \($0)" } ?? ""))
    }
    for relationship in entity.relationships.sorted(by: { $0.name < $1.name }) {
      lines.append(
        "relationship \(relationship.name) \(relationship.destination)"
          + " inverse \(relationship.inverseName ?? "-")"
          + " \(relationship.minimumModelCount)...\(relationship.maximumModelCount)"
          + (relationship.isToOneRelationship ? " one" : " many")
          + (relationship.isOptional ? " optional" : "")
          + (relationship.hashModifier.map { " modifier \($0)" } ?? ""))
    }
    for group in entity.uniquenessConstraints.map({ $0.joined(separator: ",") }).sorted() {
      lines.append("unique \(group)")
    }
    return lines.joined(separator: "\n")
  }

  /// SHA-512 over each entity's name and hash, the names in byte-wise order.
  static func digest(of hashes: [String: Data]) -> Data {
    var bytes = Data()
    for (name, hash) in inByteOrder(hashes) {
      bytes.append(contentsOf: name.utf8)
      bytes.append(hash)
    }
    return Digest.sha512(bytes)
  }

  /// SHA-256 over the hashes alone, in the same order.
  static func checksum(of hashes: [String: Data]) -> Data {
    Digest.sha256(inByteOrder(hashes).reduce(into: Data()) { $0.append($1.value) })
  }

  private static func inByteOrder(_ hashes: [String: Data]) -> [(key: String, value: Data)] {
    hashes.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
  }

  private static let hashesVersion = 3
  /// The newest version that was seen in a store; a store without one was never seen.
  private static let frameworkVersion = 1523

  private enum Key {
    static let storeType = "NSStoreType"
    static let identifiers = "NSStoreModelVersionIdentifiers"
    static let hashes = "NSStoreModelVersionHashes"
    static let hashesVersion = "NSStoreModelVersionHashesVersion"
    static let digest = "NSStoreModelVersionHashesDigest"
    static let checksum = "NSStoreModelVersionChecksumKey"
    static let frameworkVersion = "NSPersistenceFrameworkVersion"
    static let autoVacuumLevel = "_NSAutoVacuumLevel"
    static let fingerprint = "InstarFingerprint"
    static let maker = "InstarMadeStore"
    static let version = "InstarVersion"
    static let schema = "InstarSchema"
  }
}
