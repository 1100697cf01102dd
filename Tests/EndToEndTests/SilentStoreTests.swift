import Foundation
import InstarSchema
import InstarSupervisor
import InstarTestSupport
import InstarWire
import Testing

@Suite("Commands for a store whose file system does not answer")
struct SilentStoreTests {
  @Test(
    "commands for a store whose file system does not answer end, and do their work on the other stores",
    .enabled(if: SilentFileSystem.canMount, "mounting needs root and FUSE"),
    .timeLimit(.minutes(10))
  )
  func commands() async throws {
    let plugin = try await FixturePlugins.tables.value
    let good = try TableStore("alembic")
    let probed = try TableStore("alembic")
    let folder = try TemporaryFolder()
    try FileManager.default.createDirectory(
      atPath: folder.path("silent"), withIntermediateDirectories: false)
    let fileSystem = try SilentFileSystem(at: folder.path("silent"))
    defer { fileSystem.end() }
    // The kernel answers about the mounted folder itself.
    let silent = ["a", "b"].map { folder.path("silent/stores/\($0).store") }
    func run(_ command: String, _ store: TableStore) async throws -> CommandLineTool.Answer {
      try await CommandLineTool.run(
        [command, store.path] + silent
          + ["--plugin", plugin, "--state-dir", store.folder.path("state"), "--json"])
    }
    async let migration = run("migrate", good)
    async let verification = run("verify", probed)
    let probe = try await run("probe", probed)
    let states = Dictionary(
      try probe.objects(ProbeReport.self).map { ($0.store, $0.state) }, uniquingKeysWith: { $1 })
    #expect(
      states == [probed.path: .behind, silent[0]: .unreadable, silent[1]: .unreadable],
      "\(probe.messages)")
    let reports = try await verification.objects(VerificationReport.self)
    #expect(
      reports.filter { $0.errors.first?.code == .timeLimit }.map(\.store) == silent)
    #expect(reports.contains { $0.store == probed.path })
    let answer = try await migration
    let lines = answer.output.split(separator: "\n")
    let first = try JSONDecoder().decode(RunReport.self, from: Data(try #require(lines.first).utf8))
    #expect(first.store == good.path && first.result == .migrated)
    #expect(answer.output.contains("its file system did not answer within 30 s"))
  }

  @Test(
    "commands about the backups and holds of a silent store end, and do their work on the others",
    .enabled(if: SilentFileSystem.canMount, "mounting needs root and FUSE"),
    .timeLimit(.minutes(10))
  )
  func otherCommands() async throws {
    let good = try TableStore("alembic")
    let state = good.folder.path("state")
    let plugin = try await FixturePlugins.tables.value
    let migrated = try await CommandLineTool.run([
      "migrate", good.path, "--plugin", plugin, "--state-dir", state,
    ])
    #expect(migrated.status == 0, "\(migrated.messages)")
    let folder = try TemporaryFolder()
    try FileManager.default.createDirectory(
      atPath: folder.path("silent"), withIntermediateDirectories: false)
    let fileSystem = try SilentFileSystem(at: folder.path("silent"))
    defer { fileSystem.end() }
    // Its folder is resolved: the kernel answers about the mounted folder itself.
    let silent = folder.path("silent/a.store")
    var report = RunReport(run: "R1", store: silent, result: .migrated, startedAt: 1)
    report.backup = folder.path("silent/.instar/a.store.R1.backup")
    try StateFolder(path: state).append(report)
    let commands = [
      ["restore", silent], ["restore", "--to", folder.path("copy.store"), silent],
      ["backups", "list"], ["backups", "verify", silent, good.path],
      ["backups", "prune", "--keep", "1", silent], ["backups", "copy", silent],
      ["hold", "--why", "auditing", silent], ["release", silent],
    ]
    typealias Ended = (command: [String], answer: CommandLineTool.Answer)
    let answers = try await withThrowingTaskGroup(of: Ended.self) { group -> [Ended] in
      for command in commands {
        group.addTask {
          let answer = try await CommandLineTool.run(command + ["--state-dir", state])
          return (command, answer)
        }
      }
      var answers: [Ended] = []
      for try await ended in group { answers.append(ended) }
      return answers
    }
    for (command, answer) in answers {
      #expect(answer.status != 0, "\(command)")
      let text = answer.output + answer.messages
      #expect(text.contains("its file system did not answer within 30 s"), "\(command): \(text)")
    }
    let listed = try #require(answers.first { $0.command == ["backups", "list"] })
    #expect(listed.answer.output.contains(good.path), "\(listed.answer.output)")
    let verified = try #require(answers.first { $0.command.contains("verify") })
    #expect(verified.answer.output.contains("sound"), "\(verified.answer.output)")
  }
}
