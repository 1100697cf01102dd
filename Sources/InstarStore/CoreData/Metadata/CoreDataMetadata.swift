public import Foundation
public import GRDB
public import InstarSchema

/// What a store of the format `coredata` declares about itself: the one row of `Z_METADATA`.
///
/// The row holds the store's identifier and a binary property list. Apps may have keys of their own in the list
/// (`setMetadata(_:for:)`), which are kept. The keys that Instar reads and writes, and the rules for their values, were
/// observed in stores of Apple's frameworks.
public struct CoreDataMetadata {
  /// `Z_UUID`: created with the store and kept through every migration.
  public var uuid: String

  /// The property list.
  public private(set) var plist: [String: Any]
  /// The bytes that the property list was read from; `nil` in new metadata.
  package private(set) var readBytes: Data?

  /// Whether the archived model in `Z_MODELCACHE` belongs to another schema, so that `write` deletes it.
  private var modelCacheIsStale = false
  /// The archived model that `write` inserts instead, where it is known.
  private var newModelCache: Data?

  /// Creates the metadata of a new store.
  ///
  /// Entities get Instar's own hashes (see `stamp`), because Apple's are not documented.
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

  /// The declared version; `nil` where the store declares none, several, or one that is not of the form 1.2.3.
  ///
  /// A plan may name a version differently from the app. A store stamped like a reference store holds both names; the
  /// plan's counts while the hashes are unchanged.
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

  /// The declared hashes by entity name; empty where the store declares none.
  public var entityHashes: [String: Data] {
    guard let hashes = plist[Key.hashes] as? [String: Any] else { return [:] }
    return hashes.compactMapValues { $0 as? Data }
  }

  /// The version of the framework that created the store; `nil` where it is not recorded.
  public var frameworkVersion: Int? {
    plist[Key.frameworkVersion] as? Int
  }

  /// Whether Instar created the store.
  public var isMadeByInstar: Bool {
    plist[Key.maker] as? Bool ?? false
  }

  /// The fingerprint that Instar stamped the store with; `nil` where it never did.
  public var fingerprint: String? {
    plist[Key.fingerprint] as? String
  }

  /// Sets the version: its identifier, its entities' hashes, and what is derived from the hashes.
  ///
  /// All other keys and the store's identifier stay. Digest and checksum are set only where the store had them, because
  /// older frameworks do not write them.
  ///
  /// - Parameters:
  ///   - unchangedEntities: The entities that are equal in the previous version. They keep their hashes, so that
  ///     Apple's frameworks still recognize them. The others get Instar's own hash: SHA-256 over `canonicalText`.
  ///   - fingerprint: The fingerprint of the version's structure.
  ///   - keepsModelCache: Whether the archived model still describes the schema, because no entity changed.
  public mutating func stamp(
    schema: Schema, unchangedEntities: Set<String>, fingerprint: String?,
    keepsModelCache: Bool = false
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
    modelCacheIsStale = !keepsModelCache
  }

  /// Sets the version as Apple's frameworks know it: hashes, what is derived from them, and identifiers are copied from
  /// a store that they created. All other keys and the store's identifier stay.
  ///
  /// - Parameters:
  ///   - reference: The metadata of a store of that version.
  ///   - modelCache: The archived model of that store.
  ///   - version: The plan's name of the version.
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
    // The archived model has the same content, and Apple's frameworks maintain it.
    if modelCache != nil { plist[Key.schema] = nil }
    modelCacheIsStale = true
    newModelCache = modelCache
  }
}

// MARK: - The schema

extension CoreDataMetadata {
  /// The most bytes of a schema in the property list.
  private static let schemaLimitBytes = 2 << 20

  /// Returns the schema that the store was stamped with, or `nil` where it was not stamped with one.
  ///
  /// It holds what tables do not: the case of names, what is optional, where keys point.
  ///
  /// - Throws: `corruptStore` where the schema cannot be used.
  public func readSchema() throws(InstarError) -> Schema? {
    guard let text = plist[Key.schema] as? String else { return nil }
    func unusable(_ cause: String) -> InstarError {
      InstarError(.corruptStore, "cannot read the schema in the metadata", cause: cause)
    }
    guard text.utf8.count <= Self.schemaLimitBytes else {
      throw unusable(
        "the schema in its metadata has \(text.utf8.count) bytes; Instar reads at most \(Self.schemaLimitBytes)"
      )
    }
    let schema: Schema
    do {
      schema = try JSONDecoder().decode(Schema.self, from: Data(text.utf8))
    } catch {
      throw unusable("the schema in its metadata is damaged")
    }
    guard Set(schema.entities.map(\.name)) == Set(entityHashes.keys) else {
      throw unusable("the schema in its metadata has other entities than the hashes beside it")
    }
    return schema
  }

  /// Whether the stamped metadata has no schema, because it was too large, and no archived model is at hand. Only the
  /// store's tables then show its schema.
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
  /// A larger property list is refused: an app's own keys are small.
  static let plistLimitBytes = 4 << 20

  private static let what = "cannot read the metadata of the store"

  /// Reads the metadata of a store.
  ///
  /// - Throws: `corruptStore` where there is no row or no property list, or where it cannot be read; else the
  ///   database's error. Nothing is written.
  public static func read(_ db: Database) throws(InstarError) -> CoreDataMetadata {
    switch try readContent(db) {
    case .usable(let metadata): return metadata
    case .unusable(let cause), .damaged(let cause):
      throw InstarError(.corruptStore, what, cause: cause)
    }
  }

  /// Returns the store's metadata, or `nil` where it is missing or unreadable, which a store can be used without.
  ///
  /// - Throws: As `readContent`.
  public static func readIfSound(_ db: Database) throws(InstarError) -> CoreDataMetadata? {
    guard case .usable(let metadata) = try readContent(db) else { return nil }
    return metadata
  }

  /// The bytes of Z_UUID, or NULL for a value that is not an identifier: an app may have written any. A run leaves such
  /// a value as it is.
  static let uuidBytes =
    "CASE WHEN typeof(Z_UUID) = 'text' AND length(Z_UUID) <= 1000 AND instr(Z_UUID, char(0)) = 0 "
    + "THEN CAST(Z_UUID AS BLOB) END"

  static func uuid(_ bytes: Data?) -> String? {
    bytes.flatMap { String(validating: $0, as: UTF8.self) }
  }

  /// What the table of the metadata has.
  enum Content {
    case usable(CoreDataMetadata)
    /// Something is missing, or is not as frameworks write it; with what that is.
    case unusable(String)
    /// The store is damaged; with what shows it.
    case damaged(String)
  }

  /// Reads the metadata of a store.
  ///
  /// - Throws: `corruptStore` where SQLite finds the pages of the table damaged; `busyStore` and the like.
  static func readContent(_ db: Database) throws(InstarError) -> Content {
    let row: (uuid: Data?, length: Int64, plist: Data?)?
    do {
      // A run reads it several times on one connection.
      let rows = try StatementReader(
        keptBy: db,
        """
        SELECT \(uuidBytes), length(Z_PLIST),
               CASE WHEN length(Z_PLIST) <= \(plistLimitBytes) THEN Z_PLIST END
        FROM Z_METADATA ORDER BY Z_VERSION LIMIT 1
        """)
      row = try rows.next() ? (rows.data(0), rows.integer(1), rows.data(2)) : nil
    } catch {
      let known = InstarError(error, what: what)
      // The table has other columns, or a value is larger than SQLite may read here.
      guard known.code == .sqlFailed else { throw known }
      return .unusable(known.cause)
    }
    guard let row else { return .unusable("Z_METADATA has no row") }
    guard row.length > 0 else { return .unusable("Z_METADATA holds no property list") }
    guard row.length <= plistLimitBytes else {
      return .unusable(
        "the property list in Z_METADATA has \(row.length) bytes; Instar reads at most \(plistLimitBytes)"
      )
    }
    guard let data = row.plist else {
      return .damaged("the property list in Z_METADATA is not a blob")
    }
    let key = data.count <= knownLimitBytes ? data : nil
    do throws(UnreadableList) {
      let list = try knownLists.value(of: key) { () throws(UnreadableList) in try List(data) }
      var metadata = CoreDataMetadata(uuid: uuid(row.uuid) ?? "", plist: list.entries)
      metadata.readBytes = data
      return .usable(metadata)
    } catch {
      return .damaged("the property list in Z_METADATA is damaged")
    }
  }

  /// What a probe reads from a property list.
  struct Declaration: Sendable {
    let version: Schema.Version?
    let fingerprint: String?
    let entityHashes: [String: Data]
    let frameworkVersion: Int?
    let isMadeByInstar: Bool

    init(_ metadata: CoreDataMetadata) {
      version = metadata.version
      fingerprint = metadata.fingerprint
      entityHashes = metadata.entityHashes
      frameworkVersion = metadata.frameworkVersion
      isMadeByInstar = metadata.isMadeByInstar
    }
  }

  /// Reads the metadata by the pages of a store.
  ///
  /// - Returns: `nil` where they are not as frameworks and Instar write them: one row, an identifier in ASCII, and a
  ///   property list that can be read.
  static func read(
    _ pages: PageReader, _ tables: StoreTables
  ) -> (uuid: String, declaration: Declaration)? {
    guard let rows = pages.rows(of: "Z_METADATA", tables, columns: 3), rows.count == 1,
      let uuid = rows[0].values[1].text(limitBytes: 1000),
      case .blob(let bytes) = rows[0].values[2], !bytes.isEmpty, bytes.count <= plistLimitBytes
    else { return nil }
    let key = bytes.count <= knownLimitBytes ? Array(bytes) : nil
    do throws(UnreadableList) {
      let declaration = try knownDeclarations.value(of: key) { () throws(UnreadableList) in
        Declaration(CoreDataMetadata(uuid: uuid, plist: try List(Data(bytes)).entries))
      }
      return (uuid, declaration)
    } catch {
      return nil
    }
  }

  private struct UnreadableList: Error {}

  /// A property list. Its values are copies, so threads may share them.
  private struct List: @unchecked Sendable {
    let entries: [String: Any]

    init(_ bytes: Data) throws(UnreadableList) {
      guard let entries = PropertyListValue.dictionary(bytes) else { throw UnreadableList() }
      self.entries = entries
    }
  }

  /// Stores of one version have the same list, unless their app adds keys of its own. A run reads the list of its store
  /// several times.
  private static let knownLists = BoundedCache<Data, List>()
  private static let knownDeclarations = BoundedCache<[UInt8], Declaration>()
  package static let knownLimitBytes = 64 << 10

  init(uuid: String, plist: [String: Any]) {
    self.uuid = uuid
    self.plist = plist
  }

  /// Writes the metadata, in the caller's transaction if there is one.
  ///
  /// After `stamp` this also empties `Z_MODELCACHE`, which holds the archived model of the previous version. Apple's
  /// frameworks accept an empty cache, as in their older stores, but not a wrong one.
  public func write(_ db: Database) throws {
    try encoded().write(db)
  }

  /// Returns what `write` writes.
  ///
  /// - Throws: An error where a value has no place in a property list.
  package func encoded() throws -> Encoded {
    Encoded(
      uuid: uuid,
      plist: try PropertyListSerialization.data(
        fromPropertyList: plist, format: .binary, options: 0),
      modelCacheIsStale: modelCacheIsStale, newModelCache: newModelCache, lacksSchema: lacksSchema)
  }

  /// Metadata as they are stored. Stores of one version have the same but for the identifier, unless their app adds
  /// keys of its own.
  package struct Encoded: Sendable {
    /// `Z_UUID`; empty for what the store has.
    package var uuid: String
    fileprivate let plist: Data
    fileprivate let modelCacheIsStale: Bool
    fileprivate let newModelCache: Data?
    /// See `CoreDataMetadata.lacksSchema`.
    package let lacksSchema: Bool

    /// See `CoreDataMetadata.write`.
    package func write(_ db: Database) throws {
      // The row that `read` reads: there is no other in a store that Apple's frameworks wrote.
      try db.execute(
        sql: """
          UPDATE Z_METADATA SET Z_UUID = coalesce(nullif(?, ''), Z_UUID), Z_PLIST = ?
          WHERE Z_VERSION = (SELECT min(Z_VERSION) FROM Z_METADATA)
          """, arguments: [uuid, plist])
      if db.changesCount == 0 {
        try db.execute(sql: "DELETE FROM Z_METADATA")
        try db.execute(
          sql: "INSERT INTO Z_METADATA (Z_VERSION, Z_UUID, Z_PLIST) VALUES (1, ?, ?)",
          arguments: [uuid, plist])
      }
      guard modelCacheIsStale, try Self.hasModelCache(db) else { return }
      try db.runWithoutRows("DELETE FROM Z_MODELCACHE")
      if let newModelCache {
        try db.execute(
          sql: "INSERT INTO Z_MODELCACHE (Z_CONTENT) VALUES (?)", arguments: [newModelCache])
      }
    }

    private static func hasModelCache(_ db: Database) throws -> Bool {
      try db.integer(
        "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'Z_MODELCACHE' COLLATE NOCASE"
      ) != nil
    }
  }
}

// MARK: - Conventions

extension CoreDataMetadata {
  /// Returns a statement that writes metadata with only what the conventions of a store depend on.
  package static func insertStatement(frameworkVersion: Int?, isMadeByInstar: Bool) throws -> String
  {
    let maker = Maker(frameworkVersion: frameworkVersion, isInstar: isMadeByInstar)
    return try insertStatements.value(of: maker) {
      var plist: [String: Any] = [Key.maker: isMadeByInstar]
      if let frameworkVersion { plist[Key.frameworkVersion] = frameworkVersion }
      let data = try PropertyListSerialization.data(
        fromPropertyList: plist, format: .binary, options: 0)
      return "INSERT INTO Z_METADATA (Z_VERSION, Z_UUID, Z_PLIST) "
        + "VALUES (1, '', \(AttributeValue.blob(Array(data)).literal))"
    }
  }

  /// Who created a store.
  private struct Maker: Hashable {
    let frameworkVersion: Int?
    let isInstar: Bool
  }

  private static let insertStatements = BoundedCache<Maker, String>()
}

// MARK: - Hashes

extension CoreDataMetadata {
  /// Returns the text that Instar's own hash of an entity is computed from.
  ///
  /// It contains what Core Data's own hash depends on, and leaves out what that ignores: default values, delete rules,
  /// indexes and earlier names.
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
  /// The newest version seen in a store. Every known store has one.
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
