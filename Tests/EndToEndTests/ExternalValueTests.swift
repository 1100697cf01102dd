import Foundation
import GRDB
import Instar
import InstarStore
import InstarTestSupport
import InstarWire
import Testing

/// The models of `Tests/Fixtures/Plugins/Photos.swift` at 1.0.0, to make stores with.
private enum PhotosSchemaV1: VersionedSchema {
  static var versionIdentifier: Schema.Version { Schema.Version(1, 0, 0) }
  static var models: [any PersistentModel.Type] { [Photo.self] }

  @Model
  final class Photo {
    var name: String
    @Attribute(.externalStorage) var image: Data?
    @Attribute(.externalStorage) var thumbnail: Data?

    init(name: String) { self.name = name }
  }
}

@Suite("Stores with large values in files")
struct ExternalValueTests {
  @Test(
    "a confined worker reads the store's own files and writes new ones; the store, its backup and their files fit"
  )
  func migration() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("Photos.store")
    let files = folder.path(".Photos_SUPPORT/_EXTERNAL_DATA")
    let large = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0 / 7) })
    let container = try ModelContainer(
      for: Schema(versionedSchema: PhotosSchemaV1.self),
      configurations: ModelConfiguration(url: URL(filePath: path)))
    let context = ModelContext(container)
    for name in ["kept", "doubled", "shortened", "empty"] {
      let photo = PhotosSchemaV1.Photo(name: name)
      if name != "empty" {
        photo.image = Data(name.utf8) + large
        photo.thumbnail = name == "kept" ? Data([1, 2, 3]) : large
      }
      context.insert(photo)
    }
    try context.save()
    try container.close()
    let before = Set(try FileManager.default.contentsOfDirectory(atPath: files))
    #expect(before.count == 5)

    let plugin = try await FixturePlugins.photos.value
    let planned = try await CommandLineTool.run("plan", path, "--plugin", plugin, "--json")
    #expect(planned.output.contains("instar_external_read(ZTHUMBNAIL)"))
    let answer = try await CommandLineTool.run(
      "migrate", path, "--plugin", plugin, "--state-dir", folder.path("state"), "--json")
    #expect(answer.status == 0, Comment(rawValue: answer.messages + answer.output))
    let report = try #require(try answer.objects(RunReport.self).first)

    let values = ExternalValues(folder: files)
    func rows(_ path: String, _ values: ExternalValues, _ column: String) throws -> [String: Data] {
      try StoreReader.withReadOnlyStore(path) { db in
        var found: [String: Data] = [:]
        for row in try Row.fetchAll(db, sql: "SELECT ZNAME, \(column) FROM ZPHOTO") {
          let columns = Array(row.databaseValues)
          guard let stored = Data.fromDatabaseValue(columns[1]) else { continue }
          found[String.fromDatabaseValue(columns[0]) ?? ""] = try values.read(stored)
        }
        return found
      }
    }
    let images = try rows(path, values, "ZIMAGE")
    #expect(images["kept"] == Data("kept".utf8) + large)
    let doubled = Data("doubled".utf8) + large
    #expect(images["doubled"] == doubled + doubled)
    #expect(images["shortened"] == (Data("shortened".utf8) + large).prefix(10))
    #expect(images["empty"] == nil)
    let lines = try StoreReader.withReadOnlyStore(path) { db in
      try String.fetchAll(
        db,
        sql: """
          SELECT ZNAME || ' ' || ZSIZE || ' ' || ifnull(length(ZTHUMBNAIL), '-') || ' '
            || hex(substr(ZTHUMBNAIL, 1, 3)) FROM ZPHOTO ORDER BY Z_PK
          """)
    }
    #expect(
      lines == [
        "kept 300004 3 010203", "doubled 300007 300000 000000",
        "shortened 300009 300000 000000", "empty 0 - ",
      ])
    let after = Set(try FileManager.default.contentsOfDirectory(atPath: files))
    #expect(after.count == 2)
    #expect(after.intersection(before).count == 1)

    // The backup is a whole store with files of its own.
    let backup = try #require(report.backup)
    let kept = ExternalValues(folder: ExternalValues.folder(ofStore: backup))
    #expect(try rows(backup, kept, "ZIMAGE")["doubled"] == doubled)
    #expect(try rows(backup, kept, "ZTHUMBNAIL")["shortened"] == large)
    let probe = try await CommandLineTool.run("probe", path, "--json")
    let seen = try #require(try probe.objects(ProbeReport.self).first)
    #expect(seen.externalFiles == 2)
    #expect(seen.externalBytes == Int64(300_004 + 2 * 300_007))
  }
}
