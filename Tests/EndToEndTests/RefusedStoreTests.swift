import Foundation
import GRDB
import InstarSchema
import InstarStore
import InstarTestSupport
import InstarWire
import Testing

@Suite("A store that cannot be migrated")
struct RefusedStoreTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// Everything in the folder: name, bytes and modification time.
  private func contents() throws -> [String: [String]] {
    var contents: [String: [String]] = [:]
    for name in folder.names() where name != "state" {
      let attributes = try FileManager.default.attributesOfItem(atPath: folder.path(name))
      let data = try Data(contentsOf: URL(filePath: folder.path(name)))
      contents[name] = [
        data.base64EncodedString(), "\(attributes[.modificationDate] ?? "")",
        "\(attributes[.posixPermissions] ?? "")",
      ]
    }
    return contents
  }

  private func expectRefusal(_ path: String, _ codes: Set<InstarError.Code>) async throws {
    let before = try contents()
    let answer = try await CommandLineTool.run([
      "migrate", path, "--plugin", try await FixturePlugins.boxes.value,
      "--state-dir", folder.path("state"), "--json",
    ])
    #expect([1, 3].contains(answer.status), Comment(rawValue: answer.messages))
    let error = try #require(try answer.objects(RunReport.self).first?.error)
    #expect(codes.contains(error.code), "\(error)")
    #expect(error.store == path)
    #expect(!error.what.isEmpty && !error.cause.isEmpty)
    #expect(error.state == "unchanged")
    #expect(try contents() == before)
  }

  @Test("a file that is not SQLite is refused and left byte for byte as it was")
  func notSQLite() async throws {
    let path = folder.path("text.store")
    try Data("this is a letter, not a store".utf8).write(to: URL(filePath: path))
    try await expectRefusal(path, [.notAStore])
    let empty = folder.path("empty.store")
    try Data().write(to: URL(filePath: empty))
    try await expectRefusal(empty, [.notAStore])
  }

  @Test("a store whose backups' names would be too long is refused before a run begins")
  func longName() async throws {
    let store = try BoxStore(String(repeating: "n", count: 214), in: folder)
    try await expectRefusal(store.path, [.unsupported])
    let plan = try await CommandLineTool.run([
      "plan", store.path, "--plugin", try await FixturePlugins.boxes.value, "--json",
    ])
    #expect(plan.status == 3, Comment(rawValue: plan.messages))
  }

  @Test(
    "a store whose path, or the paths of its runs' files, would be too long for SQLite is refused",
    arguments: [(453, InstarError.Code.unsupported), (504, .unsupported), (505, .unreadableStore)])
  func longPath(bytes: Int, code: InstarError.Code) async throws {
    let store = try BoxStore("fine", in: folder, journalMode: "delete")
    // Each folder name is shorter than 255 bytes.
    let missing = bytes - folder.path("/fine.store").utf8.count
    let deep = folder.path(
      String(repeating: "d", count: missing / 2) + "/"
        + String(repeating: "d", count: missing - missing / 2 - 2))
    try FileManager.default.createDirectory(atPath: deep, withIntermediateDirectories: true)
    let path = deep + "/fine.store"
    try #require(path.utf8.count == bytes)
    try #require(rename(store.path, path) == 0)
    let before = try Data(contentsOf: URL(filePath: path))
    let answer = try await CommandLineTool.run([
      "migrate", path, "--plugin", try await FixturePlugins.boxes.value,
      "--state-dir", folder.path("state"), "--json",
    ])
    let error = try #require(try answer.objects(RunReport.self).first?.error)
    #expect(error.code == code && error.state == "unchanged", "\(error)")
    #expect(error.cause.contains("504 bytes") && error.next?.contains("move the store") == true)
    #expect(try Data(contentsOf: URL(filePath: path)) == before)
  }

  @Test("a store whose path is not UTF-8 is refused, and no other file is used")
  func malformedPath() async throws {
    let other = try BoxStore("bad\u{FFFD}", in: folder)
    let before = try contents()
    let shell = try await Program.run(
      "/bin/sh",
      [
        "-c",
        #"exec "$0" migrate "$1" --plugin "$2" --state-dir "$3/state" "#
          + #""$3/$(printf 'bad\377.store')""#,
        CommandLineTool.productsFolder.appendingPathComponent("instarctl").path, other.path,
        try await FixturePlugins.boxes.value, folder.url.path,
      ])
    #expect(shell.status == 2)
    #expect(shell.messages.contains("is not valid UTF-8"))
    #expect(try contents() == before)
  }

  @Test(
    "a store in a folder whose path is not UTF-8 is refused, and no other file is used",
    arguments: [
      (#"exec "$0" migrate "#, "link/a.store", 3, "the path of its folder is not valid UTF-8"),
      (#"cd link && exec "$0" migrate "#, "a.store", 2, "working folder is not valid UTF-8"),
    ])
  func malformedFolder(command: String, store: String, status: Int32, text: String) async throws {
    try FileManager.default.createDirectory(
      atPath: folder.path("bad\u{FFFD}"), withIntermediateDirectories: false)
    let other = try BoxStore("bad\u{FFFD}/a", in: folder)
    let before = try Data(contentsOf: URL(filePath: other.path))
    let shell = try await Program.run(
      "/bin/sh",
      [
        "-c",
        #"cd "$2" && bad=$(printf 'bad\377') && mkdir "$bad" && ln -s "$bad" link && "# + command
          + #""$3" --plugin "$1" --state-dir "$2/state""#,
        CommandLineTool.productsFolder.appendingPathComponent("instarctl").path,
        try await FixturePlugins.boxes.value, folder.url.path, store,
      ])
    #expect(shell.status == status)
    #expect(shell.messages.contains(text), Comment(rawValue: shell.messages))
    #expect(try Data(contentsOf: URL(filePath: other.path)) == before)
  }

  @Test(
    "a truncated store is refused and left byte for byte as it was",
    arguments: [100, 4096, 12_000, 20_481])
  func truncated(bytes: Int) async throws {
    let store = try BoxStore("fine", in: folder)
    let whole = try Data(contentsOf: URL(filePath: store.path))
    try whole.prefix(bytes).write(to: URL(filePath: store.path))
    try await expectRefusal(store.path, [.corruptStore, .notAStore])
  }

  @Test("a store with a damaged page has one exit status, whichever page it is")
  func damagedPage() async throws {
    let store = try BoxStore("fine", in: folder, journalMode: "delete")
    let whole = try Data(contentsOf: URL(filePath: store.path))
    var results: Set<RunReport.Result> = []
    for start in stride(from: 4096, to: whole.count, by: 4096) {
      let page = start..<start + 4096
      var bytes = whole
      bytes.replaceSubrange(page, with: Data(repeating: 0xA5, count: page.count))
      try bytes.write(to: URL(filePath: store.path))
      let answer = try await CommandLineTool.run([
        "rehearse", store.path, "--plugin", try await FixturePlugins.boxes.value,
        "--state-dir", folder.path("state"), "--json",
      ])
      let report = try #require(
        try answer.objects(RunReport.self).first, Comment(rawValue: answer.messages))
      guard report.error?.code == .corruptStore else { continue }
      results.insert(report.result)
      #expect(answer.status == 3 && report.error?.state == "unchanged", "page at \(start)")
    }
    #expect(results.contains(.failed), "\(results)")
  }

  @Test("a store newer than the plan is refused and left byte for byte as it was")
  func newer() async throws {
    let store = try BoxStore("fine", in: folder)
    try store.read { db in
      try db.execute(sql: "ALTER TABLE ZBOX ADD COLUMN ZCOLOR VARCHAR")
      var metadata = try CoreDataMetadata.read(db)
      let schema = Schema(
        entities: [Schema.Entity(name: "Box")], version: Schema.Version(3, 0, 0))
      metadata.stamp(schema: schema, unchangedEntities: ["Box"], fingerprint: nil)
      try metadata.write(db)
    }
    try await expectRefusal(store.path, [.storeAhead])
  }

  @Test("a store that no plan knows is refused with the nearest version and the differences")
  func unknown() async throws {
    let store = try BoxStore("fine", in: folder)
    try store.read { try $0.execute(sql: "ALTER TABLE ZBOX ADD COLUMN ZCOLOR VARCHAR") }
    try await expectRefusal(store.path, [.unknownVersion])
  }
}
