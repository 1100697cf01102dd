internal import Foundation
internal import GRDB

/// A store as Apple's frameworks write it, of which no file may be kept here: a twin, written from what is known of the
/// original.
///
/// Its tables are spelled out, statement by statement in the order of the page "Core Data layout". Nothing of Instar
/// makes them: what Instar computes is compared with them.
public struct AppleStore: Sendable, CustomStringConvertible {
  public enum History: Sendable {
    /// With `ATRANSACTIONSTRING`.
    case current
    /// As frameworks about 851 have it.
    case withoutStrings
  }

  public var name: String
  /// `CREATE`, of the app's own tables and indexes.
  var statements: [String]
  /// In the order of `Z_ENT`: the entity's name, its super-entity's number and `Z_MAX`.
  var entities: [(name: String, superNumber: Int, max: Int)]
  var rows: [String]
  /// `nil` for a store without an archived model.
  var model: ArchivedModel?
  var frameworkVersion: Int
  var identifiers = [""]
  /// Keys of the app's own in the metadata.
  var appKeys: [String: any Sendable] = [:]
  /// What was written to it after it was made.
  var history: History?
  /// Whether the metadata's property list is NULL.
  public var hasMetadata = true
  /// Names that Z_PRIMARYKEY has instead of the entity's.
  var staleNames: [String: String] = [:]

  public var description: String { name }

  /// What the store says of itself, as its file name in a folder.
  public var fileName: String { "\(name).sqlite" }

  /// The same store, but nothing tells its model.
  public var withoutModel: AppleStore {
    var store = self
    store.model = nil
    store.staleNames = [:]
    return store
  }

  /// Makes the file, with its log checkpointed.
  ///
  /// - Parameter isLogged: Whether it is left in WAL mode.
  /// - Returns: Its path.
  @discardableResult
  public func write(to folder: TemporaryFolder, isLogged: Bool = true) throws -> String {
    let path = folder.path(fileName)
    let queue = try DatabaseQueue(path: path)
    try queue.writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA synchronous = OFF")
      if isLogged { try db.execute(sql: "PRAGMA journal_mode = WAL") }
      try db.inTransaction {
        try fill(db)
        return .commit
      }
      if isLogged { try db.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
    }
    try queue.close()
    return path
  }

  private func fill(_ db: Database) throws {
    for statement in statements { try db.execute(sql: statement) }
    try db.execute(
      sql: """
        CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER);
        CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB);
        """)
    if frameworkVersion >= 600 {
      try db.execute(sql: "CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB)")
      if let model {
        try db.execute(
          sql: "INSERT INTO Z_MODELCACHE VALUES (?)", arguments: [Data(model.packed)])
      } else if !hasMetadata {
        try db.execute(sql: "INSERT INTO Z_MODELCACHE VALUES (NULL)")
      }
    }
    for (index, entity) in entities.enumerated() {
      try db.execute(
        sql: "INSERT INTO Z_PRIMARYKEY VALUES (?, ?, ?, ?)",
        arguments: [
          index + 1, staleNames[entity.name] ?? entity.name, entity.superNumber, entity.max,
        ])
    }
    try db.execute(
      sql: "INSERT INTO Z_METADATA VALUES (1, ?, ?)",
      arguments: [Self.uuid(of: name), hasMetadata ? try propertyList() : nil])
    for row in rows { try db.execute(sql: row) }
    if let history { try addHistory(db, history) }
  }

  // MARK: Metadata (section 2.4)

  private func propertyList() throws -> Data {
    var plist: [String: Any] = appKeys
    plist["NSStoreType"] = "SQLite"
    plist["NSStoreModelVersionHashesVersion"] = 3
    plist["NSStoreModelVersionIdentifiers"] = identifiers
    plist["NSPersistenceFrameworkVersion"] = frameworkVersion
    plist["_NSAutoVacuumLevel"] = "2"
    plist["NSStoreModelVersionHashes"] = Dictionary(
      uniqueKeysWithValues: entities.map { ($0.name, Self.bytes(32, from: $0.name)) })
    if frameworkVersion >= 977 {
      plist["NSStoreModelVersionHashesDigest"] =
        Self.bytes(64, from: "\(name) digest").base64EncodedString()
    }
    if frameworkVersion >= 1327 {
      plist["NSStoreModelVersionChecksumKey"] =
        Self.bytes(32, from: "\(name) checksum").base64EncodedString()
    }
    if frameworkVersion >= 1518 { plist["NSPersistenceMaximumFrameworkVersion"] = 1523 }
    return try PropertyListSerialization.data(fromPropertyList: plist, format: .binary, options: 0)
  }

  private static func uuid(of name: String) -> String {
    let hex = bytes(16, from: name).map { String(format: "%02X", $0) }.joined()
    let parts = [8, 4, 4, 4, 12]
    var rest = hex[...]
    return parts.map { length in
      defer { rest = rest.dropFirst(length) }
      return String(rest.prefix(length))
    }.joined(separator: "-")
  }

  /// Bytes that look random, the same for the same text.
  private static func bytes(_ count: Int, from text: String) -> Data {
    var seed: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in text.utf8 { seed = (seed ^ UInt64(byte)) &* 0x100_0000_01B3 }
    var generator = SeededGenerator(seed: seed)
    return Data((0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) })
  }

  // MARK: History (section 9)

  /// An insert and an update of the first row of each entity.
  private func addHistory(_ db: Database, _ history: History) throws {
    try db.execute(
      sql: """
        CREATE TABLE ACHANGE ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZCHANGETYPE INTEGER, ZENTITY INTEGER, ZENTITYPK INTEGER, ZTRANSACTIONID INTEGER, ZCOLUMNS BLOB );
        """)
    switch history {
    case .current:
      try db.execute(
        sql: """
          CREATE TABLE ATRANSACTION ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZAUTHORTS INTEGER, ZBUNDLEIDTS INTEGER, ZCONTEXTNAMETS INTEGER, ZPROCESSIDTS INTEGER, ZTIMESTAMP FLOAT, ZAUTHOR VARCHAR, ZBUNDLEID VARCHAR, ZCONTEXTNAME VARCHAR, ZPROCESSID VARCHAR, ZQUERYGEN BLOB );
          CREATE TABLE ATRANSACTIONSTRING ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZNAME VARCHAR );
          CREATE INDEX ACHANGE_ZTRANSACTIONID_INDEX ON ACHANGE (ZTRANSACTIONID);
          CREATE INDEX ATRANSACTION_ZAUTHORTS_INDEX ON ATRANSACTION (ZAUTHORTS);
          CREATE INDEX ATRANSACTION_ZBUNDLEIDTS_INDEX ON ATRANSACTION (ZBUNDLEIDTS);
          CREATE INDEX ATRANSACTION_ZCONTEXTNAMETS_INDEX ON ATRANSACTION (ZCONTEXTNAMETS);
          CREATE INDEX ATRANSACTION_ZPROCESSIDTS_INDEX ON ATRANSACTION (ZPROCESSIDTS);
          CREATE INDEX Z_TRANSACTION_TransactionAuthorIndex ON ATRANSACTION (ZAUTHOR COLLATE BINARY ASC);
          CREATE INDEX Z_TRANSACTION_TransactionTimestampIndex ON ATRANSACTION (ZTIMESTAMP COLLATE BINARY ASC);
          CREATE UNIQUE INDEX Z_TRANSACTIONSTRING_UNIQUE_NAME ON ATRANSACTIONSTRING (ZNAME COLLATE BINARY ASC);
          INSERT INTO ATRANSACTIONSTRING VALUES (1, 16003, NULL, 'com.example.app'), (2, 16003, NULL, 'app');
          INSERT INTO ATRANSACTION VALUES (1, 16002, NULL, NULL, 1, NULL, 2, 752000000.25, NULL, NULL, NULL, NULL, NULL);
          INSERT INTO Z_PRIMARYKEY VALUES (16003, 'TRANSACTIONSTRING', 0, 175);
          """)
    case .withoutStrings:
      try db.execute(
        sql: """
          CREATE TABLE ATRANSACTION ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZTIMESTAMP FLOAT, ZAUTHOR VARCHAR, ZBUNDLEID VARCHAR, ZCONTEXTNAME VARCHAR, ZPROCESSID VARCHAR );
          CREATE INDEX ACHANGE_ZTRANSACTIONID_INDEX ON ACHANGE (ZTRANSACTIONID);
          INSERT INTO ATRANSACTION VALUES (1, 16002, NULL, 752000000.25, NULL, 'com.example.app', NULL, 'app');
          """)
    }
    for (index, _) in entities.enumerated() {
      try db.execute(
        sql: """
          INSERT INTO ACHANGE VALUES (\(2 * index + 1), 16001, NULL, 0, \(index + 1), 1, 1, NULL);
          INSERT INTO ACHANGE VALUES (\(2 * index + 2), 16001, NULL, 1, \(index + 1), 1, 1, x'40');
          """)
    }
    try db.execute(
      sql: """
        INSERT INTO Z_PRIMARYKEY VALUES (16001, 'CHANGE', 0, \(2 * entities.count));
        INSERT INTO Z_PRIMARYKEY VALUES (16002, 'TRANSACTION', 0, 1);
        """)
  }
}
