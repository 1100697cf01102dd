import Foundation
import GRDB
import Instar
import InstarStore
import InstarTestSupport
import InstarWire
import Testing

@Suite("Stores with large values in files")
struct ExternalValueTests {
  @Test(
    "a confined worker reads the store's own files and writes new ones; the store, its backup and their files fit"
  )
  func migration() async throws {
    let folder = try TemporaryFolder()
    let path = folder.path("Photos.store")
    let files = folder.path(".Photos_SUPPORT/_EXTERNAL_DATA")
    let large = PhotoStore.large
    try PhotoStore.make(at: path)
    let before = Set(try FileManager.default.contentsOfDirectory(atPath: files))
    #expect(before.count == 5)

    let plugin = try await FixturePlugins.photos.value
    let planned = try await CommandLineTool.run("plan", path, "--plugin", plugin, "--json")
    #expect(planned.output.contains("instar_external_read(ZTHUMBNAIL)"))
    let answer = try await CommandLineTool.run(
      "migrate", path, "--plugin", plugin, "--state-dir", folder.path("state"), "--json")
    #expect(answer.status == 0, Comment(rawValue: answer.messages + answer.output))
    let report = try #require(try answer.objects(RunReport.self).first)

    let images = try PhotoStore.images(of: path)
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
    #expect(try PhotoStore.images(of: backup)["doubled"] == doubled)
    #expect(try PhotoStore.images(of: backup, column: "ZTHUMBNAIL")["shortened"] == large)
    let probe = try await CommandLineTool.run("probe", path, "--json")
    let seen = try #require(try probe.objects(ProbeReport.self).first)
    #expect(seen.externalFiles == 2)
    #expect(seen.externalBytes == Int64(300_004 + 2 * 300_007))
  }
}
