import Foundation
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

/// What `instarctl probe` and the keeper behind it make of hostile files. `InstarStoreTests` has the
/// same files read in one process.
@Suite("Hostile stores, probed by a keeper")
struct HostileStoreTests {
  @Test(
    "one keeper answers for a batch of hostile files, and leaves each as it was",
    .timeLimit(.minutes(3)))
  func batch() async throws {
    let folder = try TemporaryFolder()
    let seed = UInt64.random(in: 0...UInt64.max)
    let hostile = try HostileStores(in: folder, flips: 1500, seed: seed)
    let before = try folder.contents()
    let paths = hostile.files.map(\.path)
    let answer = try await CommandLineTool.run(["probe", "--json"] + paths)
    #expect(try folder.contents() == before, "seed \(seed)")
    let reports = try answer.objects(ProbeReport.self)
    // Links in the folder of a path, such as '/proc/self', are resolved.
    func fileName(_ path: String) -> String { URL(fileURLWithPath: path).lastPathComponent }
    #expect(reports.map { fileName($0.store) } == paths.map(fileName))
    for (file, report) in zip(hostile.files, reports) {
      let name: Comment = "\(file.path), seed \(seed): \(report)"
      #expect(report.error?.code != .keeperDied, name)
      switch file.expected {
      case .understood(let entity):
        #expect(report.state == .unknown && report.format == .coredata, name)
        #expect(entity == nil || report.entities.first?.name == entity, name)
      case .state(let state):
        #expect(report.state.rawValue == state, name)
        #expect(report.reason?.isEmpty == false, name)
      case .anything:
        #expect(report.format != nil || report.reason?.isEmpty == false, name)
      }
    }
  }

  @Test("what a hostile file is called cannot write to the terminal")
  func terminal() async throws {
    let folder = try TemporaryFolder()
    try HostileStores.makeStore(
      folder.path("a"),
      sql: """
        UPDATE Z_PRIMARYKEY SET Z_NAME = 'a' || char(27) || '[2J' || char(10) || 'state  current'
          WHERE Z_ENT = 1
        """)
    let answer = try await CommandLineTool.run("probe", folder.path("a"))
    #expect(answer.output.contains(#"a\u001b[2J\nstate  current"#))
    #expect(!answer.output.contains("\u{1B}"))
  }

  @Test(
    "probe, plan and migrate print no control character of a file's name",
    arguments: [
      "probe", "plan", "migrate",
    ])
  func commands(_ command: String) async throws {
    let folder = try TemporaryFolder()
    let store = folder.path("a\u{1B}[2J\u{9B}2J\u{202E}\nerror: b")
    try HostileStores.makeStore(store, sql: "")
    let arguments = command == "migrate" ? ["--state-dir", folder.path("state")] : []
    let answer = try await CommandLineTool.run([command, store] + arguments)
    let written = answer.output + answer.messages
    #expect(written.contains(#"a\u001b[2J\u009b2J\u202e\nerror: b"#))
    #expect(!written.unicodeScalars.contains { ["\u{1B}", "\u{9B}", "\u{202E}"].contains($0) })
    #expect(!written.contains("\nerror: b"))

    let json = try await CommandLineTool.run([command, store, "--json"] + arguments)
    #expect(json.output.contains(#"a\u001b[2J\u009b2J\u202e\nerror: b"#))
    struct Named: Decodable { var store: String }
    #expect(try json.objects(Named.self).map(\.store) == [store])
  }
}
