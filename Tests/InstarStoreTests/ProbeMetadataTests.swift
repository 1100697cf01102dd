import Foundation
import GRDB
import InstarSchema
import InstarStore
import InstarTestSupport
import Testing

@Suite("Metadata of a Core Data store")
struct ProbeMetadataTests {
  static let first = Schema(
    entities: [
      Schema.Entity(name: "Note", attributes: [Schema.Attribute(name: "title", type: .string)]),
      Schema.Entity(name: "tag", attributes: [Schema.Attribute(name: "name", type: .string)]),
    ], version: Schema.Version(1, 0, 0))
  static let second = Schema(
    entities: [
      Schema.Entity(
        name: "Note",
        attributes: [
          Schema.Attribute(name: "title", type: .string),
          Schema.Attribute(name: "pinned", type: .bool),
        ]),
      Schema.Entity(name: "tag", attributes: [Schema.Attribute(name: "name", type: .string)]),
    ], version: Schema.Version(2, 0, 0))

  @Test(
    "a stamp replaces version and hashes, and keeps the identifier and unchanged entities' hashes")
  func stamp() throws {
    let queue = try makeDatabase()
    try queue.write { db in
      let made = CoreDataMetadata(newStoreFor: Self.first)
      try made.write(db)
      try db.execute(sql: "INSERT INTO Z_MODELCACHE VALUES (x'01')")
      var read = try CoreDataMetadata.read(db)
      #expect(read.uuid == made.uuid)
      #expect(read.version == Schema.Version(1, 0, 0))
      read.stamp(schema: Self.second, unchangedEntities: ["tag"], fingerprint: "f00d")
      try read.write(db)

      let after = try CoreDataMetadata.read(db)
      #expect(after.uuid == made.uuid)
      #expect(after.version == Schema.Version(2, 0, 0))
      #expect(after.fingerprint == "f00d")
      #expect(after.entityHashes["tag"] == made.entityHashes["tag"])
      #expect(after.entityHashes["Note"] != made.entityHashes["Note"])
      #expect(after.plist["NSStoreModelVersionHashesVersion"] as? Int == 3)
      #expect(after.plist["NSStoreType"] as? String == "SQLite")
      #expect(after.plist["_NSAutoVacuumLevel"] as? String == "2")
      #expect(
        after.plist["NSStoreModelVersionHashesDigest"] as? String
          != made.plist["NSStoreModelVersionHashesDigest"] as? String)
      #expect(try Int.fetchOne(db, sql: "SELECT count(*) FROM Z_MODELCACHE") == 0)
      #expect(try Int.fetchOne(db, sql: "SELECT count(*) FROM Z_METADATA") == 1)
    }
  }

  @Test("a stamp replaces the row that was read, and no other row")
  func severalRows() throws {
    let queue = try makeDatabase()
    try queue.write { db in
      try CoreDataMetadata(newStoreFor: Self.first).write(db)
      try db.execute(
        sql: "INSERT INTO Z_METADATA SELECT 0, 'other', Z_PLIST FROM Z_METADATA")
      var read = try CoreDataMetadata.read(db)
      #expect(read.uuid == "other")
      read.stamp(schema: Self.second, unchangedEntities: ["tag"], fingerprint: "f00d")
      let row = "SELECT Z_UUID || hex(Z_PLIST) FROM Z_METADATA WHERE Z_VERSION = 1"
      let before = try String.fetchOne(db, sql: row)
      try read.write(db)
      #expect(try CoreDataMetadata.read(db).version == Schema.Version(2, 0, 0))
      #expect(try String.fetchOne(db, sql: row) == before)
    }
  }

  @Test(
    "digest and checksum come out as Apple's frameworks wrote them",
    .enabled(if: RealStores.areGiven, "INSTAR_REAL_STORES is not set"), arguments: RealStores.all)
  func derivedValues(path: String) throws {
    let folder = try TemporaryFolder()
    let copy = folder.path + "/copy"
    try FileManager.default.copyItem(atPath: path, toPath: copy)
    try StoreReader.withReadOnlyStore(copy) { db in
      let read = try CoreDataMetadata.read(db)
      var stamped = read
      let schema = Schema(
        entities: read.entityHashes.keys.map { Schema.Entity(name: $0) },
        version: Schema.Version(9, 8, 7))
      stamped.stamp(
        schema: schema, unchangedEntities: Set(read.entityHashes.keys), fingerprint: nil)
      for key in ["NSStoreModelVersionHashesDigest", "NSStoreModelVersionChecksumKey"] {
        #expect(stamped.plist[key] as? String == read.plist[key] as? String)
      }
      #expect(stamped.entityHashes == read.entityHashes)
      #expect(stamped.version == Schema.Version(9, 8, 7))
      #expect(Set(stamped.plist.keys) == Set(read.plist.keys).union(["InstarSchema"]))
    }
  }

  @Test("an app's own keys are kept, with their types")
  func ownKeys() throws {
    let queue = try makeDatabase()
    try queue.write { db in
      try CoreDataMetadata(newStoreFor: Self.first).write(db)
      let data = try #require(try Data.fetchOne(db, sql: "SELECT Z_PLIST FROM Z_METADATA"))
      var plist = try #require(
        try PropertyListSerialization.propertyList(from: data, format: nil) as? [String: Any])
      plist["flag"] = true
      plist["count"] = 1
      plist["ratio"] = 0.5
      plist["date"] = Date(timeIntervalSinceReferenceDate: 12)
      plist["nested"] = ["list": [1, "two", Data([3 as UInt8])] as [Any]]
      let changed = try PropertyListSerialization.data(
        fromPropertyList: plist, format: .binary, options: 0)
      try db.execute(sql: "UPDATE Z_METADATA SET Z_PLIST = ?", arguments: [changed])

      var metadata = try CoreDataMetadata.read(db)
      metadata.stamp(schema: Self.second, unchangedEntities: [], fingerprint: nil)
      try metadata.write(db)
      let written = try #require(try Data.fetchOne(db, sql: "SELECT Z_PLIST FROM Z_METADATA"))
      // In XML a truth value, an integer and a real number look different.
      let text = try PropertyListSerialization.data(
        fromPropertyList: PropertyListSerialization.propertyList(from: written, format: nil),
        format: .xml, options: 0)
      let xml = String(decoding: text, as: UTF8.self).filter { !$0.isWhitespace }
      #expect(xml.contains("<key>flag</key><true/>"))
      #expect(xml.contains("<key>count</key><integer>1</integer>"))
      #expect(xml.contains("<key>ratio</key><real>0.5</real>"))
      #expect(xml.contains("<key>date</key><date>2001-01-01T00:00:12Z</date>"))
      #expect(xml.contains("<integer>1</integer><string>two</string><data>Aw==</data>"))
    }
  }

  @Test("a property list in XML is read as a binary one, within bounds")
  func xml() throws {
    let queue = try makeDatabase()
    try queue.write { db in
      var metadata = CoreDataMetadata(newStoreFor: Self.first)
      try metadata.write(db)
      let binary = try #require(try Data.fetchOne(db, sql: "SELECT Z_PLIST FROM Z_METADATA"))
      var plist = try #require(
        try PropertyListSerialization.propertyList(from: binary, format: nil) as? [String: Any])
      plist["app"] =
        [
          "flag": false, "one": 1, "real": 2.0, "list": [Data([1]), "two"] as [Any],
          "date": Date(timeIntervalSinceReferenceDate: 12),
        ] as [String: Any]
      let xml = try PropertyListSerialization.data(
        fromPropertyList: plist, format: .xml, options: 0)
      let write = "UPDATE Z_METADATA SET Z_PLIST = ?"
      try db.execute(sql: write, arguments: [xml])
      metadata = try CoreDataMetadata.read(db)
      #expect(metadata.version == Self.first.version)
      #expect(metadata.entityHashes.count == Self.first.entities.count)
      // The types come through to the binary list that is written.
      try metadata.write(db)
      let written = try #require(try Data.fetchOne(db, sql: "SELECT Z_PLIST FROM Z_METADATA"))
      #expect(written.starts(with: Data("bplist00".utf8)))
      let again = try PropertyListSerialization.data(
        fromPropertyList: PropertyListSerialization.propertyList(from: written, format: nil),
        format: .xml, options: 0)
      #expect(again == xml)

      let nested = String(repeating: "<array>", count: 10_000)
      let padding = String(repeating: " ", count: 1 << 20)
      let refused = [
        "<plist><dict><key>a</key>\(nested)</dict></plist>",
        "<plist><dict><key>a</key>" + String(repeating: "<array>", count: 40)
          + String(repeating: "</array>", count: 40) + "</dict></plist>",
        "<!DOCTYPE plist [<!ENTITY a \"ha\">]><plist><dict><key>a</key><string>&a;</string></dict></plist>",
        "<plist><dict><key>a</key><dict><key>CF$UID</key><integer>1</integer></dict></dict></plist>",
        "<plist><dict>\(padding)</dict></plist>", "{ a = b; }",
      ]
      for text in refused {
        try db.execute(sql: write, arguments: [Data(text.utf8)])
        #expect(throws: InstarError.self, Comment(rawValue: String(text.prefix(80)))) {
          try CoreDataMetadata.read(db)
        }
      }
    }
  }

  @Test("damaged property lists are reported and never a trap")
  func damagedPlists() throws {
    let queue = try makeDatabase()
    try queue.write { db in
      try CoreDataMetadata(newStoreFor: Self.first).write(db)
      let whole: Data = try #require(try Data.fetchOne(db, sql: "SELECT Z_PLIST FROM Z_METADATA"))
      var damaged: [Data] = [
        Data(), Data("bplist00".utf8), Data("<plist/>".utf8), Data("[1]".utf8),
      ]
      for count in stride(from: 0, to: whole.count, by: 7) { damaged.append(whole.prefix(count)) }
      for index in whole.indices {
        for flip: UInt8 in [0x01, 0x80, 0xFF] {
          var copy = whole
          copy[index] ^= flip
          damaged.append(copy)
        }
      }
      for plist in damaged {
        try db.execute(sql: "UPDATE Z_METADATA SET Z_PLIST = ?", arguments: [plist])
        do {
          var metadata = try CoreDataMetadata.read(db)
          _ = metadata.version
          metadata.stamp(schema: Self.second, unchangedEntities: ["tag"], fingerprint: nil)
        } catch {
          #expect((error as? InstarError)?.code == .corruptStore)
        }
      }
      try db.execute(sql: "UPDATE Z_METADATA SET Z_PLIST = NULL")
      #expect(throws: InstarError.self) { try CoreDataMetadata.read(db) }
      try db.execute(sql: "UPDATE Z_METADATA SET Z_PLIST = 'text'")
      #expect(throws: InstarError.self) { try CoreDataMetadata.read(db) }
      try db.execute(sql: "DELETE FROM Z_METADATA")
      #expect(throws: InstarError.self) { try CoreDataMetadata.read(db) }
    }
  }

  @Test("digests are those of the standard")
  func digests() {
    #expect(
      Digest.hexadecimal(Digest.sha256("abc".utf8))
        == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    #expect(
      Digest.hexadecimal(Digest.sha256([]))
        == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    #expect(
      Digest.hexadecimal(Digest.sha512("abc".utf8)).hasPrefix("ddaf35a193617abacc417349ae204131"))
    #expect(Digest.sha512([1]).count == 64)
  }

  private func makeDatabase() throws -> DatabaseQueue {
    let queue = try DatabaseQueue()
    try queue.write {
      try $0.execute(
        sql: """
          CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB);
          CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB);
          """)
    }
    return queue
  }
}
