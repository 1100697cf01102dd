import Foundation
import GRDB
import Glibc
import InstarLinux
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

@Suite("instarctl, stores")
struct CommandLineStoreTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// A copy of a sample store at 1.0.0.
  private func store(_ name: String = "a.store") throws -> String {
    let sample = CommandLineTool.repository
      .appendingPathComponent("Plugins/notes/stores/notes-1.store")
    try FileManager.default.copyItem(atPath: sample.path, toPath: folder.path(name))
    return folder.path(name)
  }

  private var state: String { folder.path("state") }

  @Test("a wrong usage exits with 2 and names the help of the command")
  func usage() async throws {
    for arguments in [
      ["probe"], ["probe", ""], ["migrate", "a", "--plugin", ""],
      ["migrate", "a", "--stage-time-limit", "3 moons"],
      ["migrate", "a", "--stage-time-limit", "99999999999999999999999h"],
      ["migrate", "a", "--stage-time-limit", "721h"], ["migrate", "a", "--busy-timeout", "61m"],
    ] {
      let answer = try await CommandLineTool.run(arguments)
      #expect(answer.status == 2)
      #expect(answer.messages.hasPrefix("error: cannot run 'instarctl \(arguments[0])'\n  cause:"))
      #expect(answer.messages.contains("next:   run: instarctl \(arguments[0]) --help"))
      #expect(answer.output.isEmpty)
    }
  }

  @Test(
    "a command that does not exist is named, with the nearest one",
    arguments: [
      (["check", "a.store"], "instarctl", "unknown command 'check'"),
      (["bogus"], "instarctl", "unknown command 'bogus'"),
      (["migrat", "a.store"], "instarctl", "unknown command 'migrat'; did you mean 'migrate'?"),
      (
        ["plugin", "chek", "--json", "a.so"], "instarctl plugin",
        "unknown command 'chek'; did you mean 'check'?"
      ),
      (["backups", "a.store"], "instarctl backups", "unknown command 'a.store'"),
      (["help", "nope"], "instarctl", "unknown command 'nope'"),
      (["help", "plugin", "nope"], "instarctl plugin", "unknown command 'nope'"),
    ])
  func unknownCommand(arguments: [String], command: String, cause: String) async throws {
    let answer = try await CommandLineTool.run(arguments)
    #expect(answer.status == 2)
    #expect(
      answer.messages == """
        error: cannot run '\(command)'
          cause:  \(cause)
          next:   run: \(command) --help   [I606]

        """)
    if arguments.contains("--json") { #expect(try answer.errors().first?.cause == cause) }
    let help = try await CommandLineTool.run("help", "probe")
    #expect(help.status == 0)
  }

  @Test(
    "a command with two letters swapped is suggested",
    arguments: [
      (["plugin", "buidl"], "build"), (["config", "chekc"], "check"), (["restroe"], "restore"),
    ])
  func swappedLetters(command: [String], meant: String) async throws {
    let answer = try await CommandLineTool.run(command)
    #expect(answer.status == 2)
    #expect(answer.messages.contains("did you mean '\(meant)'?"), "\(answer.messages)")
  }

  @Test("the cause of a mistyped option or size is one sentence that says what to write")
  func mistypedOption() async throws {
    let option = try await CommandLineTool.run(["migrate", "a.store", "--plugn", "a.so"])
    #expect(
      option.messages.contains("unknown option '--plugn'; did you mean '--plugin'?"),
      "\(option.messages)")
    let size = try await CommandLineTool.run(["migrate", "a.store", "--worker-memory", "4GB"])
    #expect(
      size.messages.contains("; write for example 512MiB or 4GiB"), "\(size.messages)")
  }

  @Test("a wrong usage with --json is also one object with the error")
  func usageAsJSON() async throws {
    for arguments in [
      ["bogus", "--json"], ["probe", "--json"], ["probe", "a", "--bogus", "--json"],
    ] {
      let answer = try await CommandLineTool.run(arguments)
      #expect(answer.status == 2)
      let error = try #require(try answer.errors().first)
      let command = arguments[0] == "probe" ? "instarctl probe" : "instarctl"
      #expect(error.code == .wrongUsage && !error.cause.isEmpty)
      #expect(error.next == "run: \(command) --help")
      #expect(try answer.errors().count == 1)
    }
    let path = try await CommandLineTool.run(["probe", "--bogus", "--", "--json"])
    #expect(path.status == 2 && path.output.isEmpty)
  }

  @Test("the launch arguments of Apple's frameworks are accepted anywhere on the command line")
  func launchArguments() async throws {
    let answer = try await CommandLineTool.run(
      "-com.apple.CoreData.SQLDebug", "3", "version", "--json",
      "-com.apple.coredata.swiftdata.debug", "1")
    #expect(answer.status == 0)
    #expect(answer.output.contains("\"version\""))
  }

  @Test("probe reports what a file is, exits with 0 and changes nothing")
  func probe() async throws {
    let store = try store()
    let text = folder.path("text.store")
    try Data("no database".utf8).write(to: URL(fileURLWithPath: text))
    let before = try Data(contentsOf: URL(fileURLWithPath: store))

    let answer = try await CommandLineTool.run("probe", store, text, folder.path, "--json")
    #expect(answer.status == 0, Comment(rawValue: answer.messages))
    let reports = try answer.objects(ProbeReport.self)
    #expect(reports.map(\.store) == [store, text, folder.path])
    #expect(reports[0].version == Schema.Version(1, 0, 0))
    #expect(reports[0].format == .coredata)
    #expect(reports[0].entities.map(\.name) == ["Folder", "Note", "Tag"])
    #expect(reports[0].entities.allSatisfy { ($0.rows ?? 0) > 0 })
    #expect(reports[1].state == .notAStore)
    #expect(reports[2].state == .notAStore)

    let human = try await CommandLineTool.run("probe", store, "--no-rows")
    #expect(human.output.contains("version   1.0.0"))
    #expect(try Data(contentsOf: URL(fileURLWithPath: store)) == before)
    #expect(folder.names() == ["a.store", "text.store"])
  }

  @Test("a probe without any plugin says why the state is unknown, and what to run")
  func probeWithoutPlugin() async throws {
    let store = try store()
    let configuration = try folder.write(
      "plugins: [\(folder.path("plugins"))]\nwatches: [{folder: /srv/none}]", to: "instard.yml")
    let answer = try await CommandLineTool.run(
      "probe", store, "--config", configuration, "--json")
    let report = try #require(try answer.objects(ProbeReport.self).first)
    #expect(report.state == .unknown)
    let reason =
      "no plugin was given, and no usable one is in '\(folder.path("plugins"))'; "
      + "run: instarctl probe --plugin FILE.so '\(store)'"
    #expect(report.reason == reason)
    let text = try await CommandLineTool.run("probe", store, "--config", configuration).output
    #expect(text.contains(reason), "\(text)")
  }

  @Test(
    "a missing store exits with 5 and has an error in its place, and the others are probed")
  func missingStore() async throws {
    let stores = [try store(), folder.path("none"), try store("b.store")]
    let answer = try await CommandLineTool.run(["probe", "--json"] + stores)
    #expect(answer.status == 5)
    let reports = try answer.objects(ProbeReport.self)
    #expect(reports.map(\.store) == stores)
    #expect(reports.map(\.error?.code) == [nil, .missingStore, nil])
    // What scripts find in every object.
    for line in answer.output.split(separator: "\n") {
      let object = try #require(
        try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
      #expect(Set(object.keys).isSuperset(of: ["store", "format", "state", "version", "entities"]))
    }
    #expect(answer.output.contains("\"entities\":[],"))
    #expect(answer.output.contains("\"format\":null"))
    #expect(answer.output.contains("\"version\":null"))
  }

  @Test(
    "a store in a folder that may not be entered is not called missing",
    .enabled(if: geteuid() != 0, "root may enter every folder"))
  func closedFolder() async throws {
    try FileManager.default.createDirectory(
      atPath: folder.path("closed"), withIntermediateDirectories: false)
    try FileManager.default.moveItem(atPath: try store(), toPath: folder.path("closed/a.store"))
    #expect(chmod(folder.path("closed"), 0) == 0)
    defer { chmod(folder.path("closed"), 0o700) }
    let answer = try await CommandLineTool.run("probe", folder.path("closed/a.store"), "--json")
    #expect(answer.status == 3)
    #expect(try answer.objects(ProbeReport.self).first?.error?.code == .unreadableStore)
  }

  @Test("hundreds of stores are reported in their order, wherever options stand between them")
  func hundredsOfStores() async throws {
    let names = (0..<300).map { "missing \($0).store" }
    let store = try store("-a.store")
    let answer = try await CommandLineTool.run(
      ["probe"] + names[..<100] + ["--no-rows"] + names[100..<200] + ["--state-dir", state]
        + names[200...] + ["--json", "--", store])
    #expect(answer.status == 5, Comment(rawValue: answer.messages))
    let reports = try answer.objects(ProbeReport.self)
    #expect(
      reports.map { URL(fileURLWithPath: $0.store).lastPathComponent } == names + ["-a.store"])
    #expect(reports.last?.version == Schema.Version(1, 0, 0))

    let usage = try await CommandLineTool.run(["probe"] + names + ["--bogus", ""])
    #expect(usage.status == 2)
    #expect(!usage.messages.contains("\0"))
  }

  @Test("plan shows the stages and their statements, and changes nothing")
  func plan() async throws {
    let store = try store()
    let plugin = try await BuiltPlugins.notes.value
    let before = try Data(contentsOf: URL(fileURLWithPath: store))
    let answer = try await CommandLineTool.run("plan", store, "--plugin", plugin, "--json")
    #expect(answer.status == 0, Comment(rawValue: answer.messages))
    let report = try #require(try answer.objects(PlanReport.self).first)
    let migration = try #require(report.migration)
    #expect(migration.from == Schema.Version(1, 0, 0))
    #expect(migration.to == Schema.Version(2, 0, 0))
    #expect(migration.stages.map(\.kind) == [.lightweight, .custom])
    #expect(migration.stages.allSatisfy { !$0.statements.isEmpty })

    let human = try await CommandLineTool.run("plan", store, "--plugin", plugin)
    #expect(human.output.contains("1.0.0 → 2.0.0, 2 stages"))
    #expect(human.output.contains("ALTER TABLE ZNOTE"))
    #expect(human.output.contains("\n     ! removes Note.contentOld"))
    #expect(human.output.contains("only the backup keeps them"))
    #expect(try Data(contentsOf: URL(fileURLWithPath: store)) == before)
    #expect(folder.names() == ["a.store"])
  }

  @Test("rehearse runs the plan on clones of a sample, and changes nothing")
  func rehearse() async throws {
    let stores = try ["a", "b", "c", "d"].map { try store("\($0).store") }
    let plugin = try await BuiltPlugins.notes.value
    let before = try Data(contentsOf: URL(fileURLWithPath: stores[0]))
    let arguments = ["--plugin", plugin, "--state-dir", state]
    let all = try await CommandLineTool.run(["rehearse"] + stores + arguments + ["--json"])
    #expect(all.status == 0, Comment(rawValue: all.messages))
    let reports = try all.objects(RunReport.self)
    #expect(reports.map(\.store) == stores)
    #expect(reports.allSatisfy { $0.result == .rehearsed && $0.stages.count == 2 })
    #expect(reports.allSatisfy { ($0.rehearsal?.neededBytes ?? 0) > 0 && $0.backup == nil })

    let half = try await CommandLineTool.run(
      ["rehearse"] + stores + arguments + ["--sample", "50%"])
    #expect(half.status == 0, Comment(rawValue: half.messages))
    #expect(half.output.contains(stores[0]) && half.output.contains(stores[2]))
    #expect(!half.output.contains(stores[1]) && !half.output.contains(stores[3]))
    #expect(half.output.contains("rehearsed: 1.0.0 → 2.0.0"))
    #expect(half.messages.contains("rehearsed 2 of 4 stores: 2 can be migrated;"))
    let history = try await CommandLineTool.run(["history", "--state-dir", state, "--json"])
    #expect(history.output.isEmpty)

    for store in stores {
      #expect(try Data(contentsOf: URL(fileURLWithPath: store)) == before)
    }
    #expect(folder.names() == ["a.store", "b.store", "c.store", "d.store", "state"])
  }

  @Test("rehearse exits as migrate would where a store cannot be migrated")
  func failedRehearsal() async throws {
    let good = try store("a.store")
    let bad = try folder.write("no database", to: "b.store")
    let plugin = try await BuiltPlugins.notes.value
    let answer = try await CommandLineTool.run(
      "rehearse", good, bad, "--plugin", plugin, "--state-dir", state)
    #expect(answer.status == 3)
    #expect(answer.messages.contains("[I101]"))
    #expect(
      answer.messages.contains("rehearsed 2 of 2 stores: 1 can be migrated, 1 cannot be migrated;"))
    #expect(answer.messages.contains("  cannot be migrated: \(bad)\n"))
    for sample in ["0", "-1", "0%", "101%", "x"] {
      let wrong = try await CommandLineTool.run(["rehearse", good, "--sample=\(sample)"])
      #expect(wrong.status == 2)
      #expect(wrong.messages.contains("is not a sample"))
    }
  }

  /// `INSTAR_REHEARSED_STORES` makes it more than 60.
  @Test("rehearse of many stores names exactly those that cannot be migrated, and leaves no trace")
  func manyRehearsals() async throws {
    let count =
      ProcessInfo.processInfo.environment["INSTAR_REHEARSED_STORES"].flatMap { Int($0) } ?? 60
    let fleet = try TemporaryFolder()
    let fine = try BoxStore("fine", in: folder)
    let throwing = try BoxStore("throw", in: folder)
    let losing = try BoxStore("lose", in: folder)
    var bad: [String: InstarError.Code] = [:]
    let stores = try (0..<count).map { number in
      let path = fleet.path("\(number).store")
      let (tenth, place) = number.quotientAndRemainder(dividingBy: count / 10)
      switch (place, tenth % 3) {
      case (3, 0):
        try fleet.write("no database", to: "\(number).store")
        bad[path] = .notAStore
      case (3, 1):
        try FileManager.default.copyItem(atPath: throwing.path, toPath: path)
        bad[path] = .stageFailed
      case (3, _):
        try FileManager.default.copyItem(atPath: losing.path, toPath: path)
        bad[path] = .invariantViolated
      default: try FileManager.default.copyItem(atPath: fine.path, toPath: path)
      }
      return path
    }
    #expect(bad.count == 10)
    let before = try fleet.contents()
    let arguments =
      ["rehearse"] + stores
      + ["--plugin", try await FixturePlugins.boxes.value, "--state-dir", state]
    let answer = try await CommandLineTool.run(arguments + ["--json"])
    let reports = try answer.objects(RunReport.self)
    #expect(reports.map(\.store) == stores)
    let failed = reports.filter { $0.result != .rehearsed }
    #expect(Dictionary(uniqueKeysWithValues: failed.map { ($0.store, $0.error?.code) }) == bad)
    #expect(reports.allSatisfy { $0.backup == nil && $0.leftovers == nil })
    #expect(try fleet.contents() == before)
    let text = try await CommandLineTool.run(arguments)
    let summary = text.messages.split(separator: "\n")
    #expect(
      summary.contains {
        $0.hasPrefix(
          "rehearsed \(count) of \(count) stores: \(count - 10) can be migrated, 10 cannot be migrated;"
        )
      }, Comment(rawValue: text.messages))
    let mark = "  cannot be migrated: "
    #expect(
      Set(summary.filter { $0.hasPrefix(mark) }.map { String($0.dropFirst(mark.count)) })
        == Set(bad.keys))
    #expect(try fleet.contents() == before)
    let history = try await CommandLineTool.run(["history", "--state-dir", state, "--json"])
    #expect(history.output.isEmpty)
  }

  @Test("migrate brings each store to 2.0.0, with one report a store, and history lists the runs")
  func migrate() async throws {
    let stores = [try store("a.store"), try store("b.store")]
    let plugin = try await BuiltPlugins.notes.value
    let arguments = ["--plugin", plugin, "--state-dir", state, "--json"]
    let answer = try await CommandLineTool.run(["migrate"] + stores + arguments)
    #expect(answer.status == 0, Comment(rawValue: answer.messages))
    let reports = try answer.objects(RunReport.self)
    #expect(reports.map(\.store) == stores)
    for report in reports {
      #expect(report.result == .migrated)
      #expect(report.to == Schema.Version(2, 0, 0))
      #expect(!report.entities.isEmpty && !report.relationships.isEmpty)
      #expect(report.entities.allSatisfy { $0.rowsBefore == $0.rowsAfter })
      #expect(report.relationships.allSatisfy { $0.linksBefore == $0.linksAfter })
      #expect(FileManager.default.fileExists(atPath: try #require(report.backup)))
    }
    let probe = try await CommandLineTool.run(["probe", "--json", "--plugin", plugin] + stores)
    #expect(try probe.objects(ProbeReport.self).map(\.state) == [.current, .current])

    let again = try await CommandLineTool.run(["migrate"] + stores + arguments)
    #expect(again.status == 0)
    #expect(try again.objects(RunReport.self).map(\.result) == [.current, .current])

    let history = try await CommandLineTool.run(
      "history", stores[0], "--state-dir", state, "--json")
    #expect(try history.objects(RunReport.self).contains { $0.run == reports[0].run })
    let table = try await CommandLineTool.run("history", "--state-dir", state)
    #expect(table.output.contains("\n\(reports[0].run)  "))
    #expect(table.output.contains("1.0.0 → 2.0.0"))
    func runs(_ filter: String...) async throws -> [String] {
      try await CommandLineTool.run(["history", "--state-dir", state, "--json"] + filter)
        .objects(RunReport.self).map(\.run)
    }
    #expect(Set(try await runs("--result", "migrated")) == Set(reports.map(\.run)))
    #expect(try await runs("--result", "failed") == [])
    #expect(
      Set(try await runs("--result", "failed", "--result", "migrated")) == Set(reports.map(\.run)))
    let rehearsed = try await CommandLineTool.run(["history", "--result", "rehearsed"])
    #expect(
      rehearsed.status == 2 && rehearsed.messages.contains("rehearsals are not in the ledger"))
    let unknown = try await CommandLineTool.run(["history", "--result", "done"])
    #expect(unknown.status == 2)
    #expect(
      unknown.messages.contains("'done' is not one of migrated, restored, refused, failed, busy\n"))
    #expect(try await runs("--plan", "NoSuchPlan") == [])
    #expect(try await runs("--limit", "1") == [try await runs().last])
    let usage = try await CommandLineTool.run(["history", "--limit", "0"])
    #expect(usage.status == 2)
  }

  @Test("a store with more than its version is adopted once that is confirmed, and keeps it")
  func adoption() async throws {
    let store = try store()
    let queue = try DatabaseQueue(path: store)
    try await queue.write { try $0.execute(sql: "CREATE INDEX mine ON ZNOTE (Z_OPT)") }
    try queue.close()
    let plugin = try await BuiltPlugins.notes.value
    let arguments = [
      "migrate", store, "--plugin", plugin, "--state-dir", state, "--json", "--adopt", "1.0.0",
    ]
    let refused = try await CommandLineTool.run(arguments)
    #expect(refused.status == 3)
    let error = try #require(try refused.objects(RunReport.self).first?.error)
    #expect(error.code == .unconfirmedAdoption)
    #expect(error.cause.contains("index ZNOTE(Z_OPT) is not expected; Instar keeps it"))

    let answer = try await CommandLineTool.run(arguments + ["--yes"])
    #expect(answer.status == 0, Comment(rawValue: answer.output))
    let probe = try await CommandLineTool.run("probe", store, "--json", "--plugin", plugin)
    #expect(try probe.objects(ProbeReport.self).first?.state == .current)
    let kept = try DatabaseQueue(path: store)
    #expect(
      try await kept.read {
        try Int.fetchOne($0, sql: "SELECT count(*) FROM sqlite_schema WHERE name = 'mine'")
      } == 1)
    try kept.close()
  }

  @Test("SQL debugging shows the statements of a migration on standard error, in Core Data's form")
  func sqlDebugging() async throws {
    let answer = try await CommandLineTool.run(
      "migrate", try store(), "--plugin", try await BuiltPlugins.notes.value, "--state-dir", state,
      "-com.apple.CoreData.SQLDebug", "1")
    #expect(answer.status == 0, Comment(rawValue: answer.messages))
    #expect(answer.messages.contains("CoreData: sql: ALTER TABLE ZNOTE"))
    #expect(!answer.output.contains("CoreData: sql:"))
  }

  @Test("the most serious problem of several stores is the status, and the good ones are migrated")
  func gravestStatus() async throws {
    let store = try store()
    let text = folder.path("text.store")
    try Data("no database".utf8).write(to: URL(fileURLWithPath: text))
    let answer = try await CommandLineTool.run(
      "migrate", folder.path("none"), folder.path, text, store,
      "--plugin", try await BuiltPlugins.notes.value, "--state-dir", state, "--json")
    #expect(answer.status == 3)
    let reports = try answer.objects(RunReport.self)
    #expect(reports.map(\.result) == [.refused, .refused, .refused, .migrated])
    #expect(reports[0].error?.code == .missingStore)
    #expect(reports.dropLast().allSatisfy { $0.error?.cause.isEmpty == false })
    #expect(try String(contentsOfFile: text, encoding: .utf8) == "no database")
    // What is missing is a mistyped name. What is not a store may have been one.
    let history = try await CommandLineTool.run("history", "--state-dir", state, "--json")
    #expect(
      try history.objects(RunReport.self).map(\.store).sorted()
        == [store, text, folder.path].sorted())
  }

  @Test(
    "many stores are migrated at once, reported in the order of the arguments, and leave no phase open"
  )
  func manyStores() async throws {
    var stores = try (10..<50).map { try store("\($0).store") }
    stores.insert(folder.path("none"), at: 20)
    let answer = try await CommandLineTool.run(
      ["migrate"] + stores
        + ["--plugin", try await BuiltPlugins.notes.value, "--state-dir", state, "--json"])
    #expect(answer.status == 5, Comment(rawValue: answer.messages))
    let reports = try answer.objects(RunReport.self)
    #expect(
      reports.map { URL(fileURLWithPath: $0.store).lastPathComponent }
        == stores.map { URL(fileURLWithPath: $0).lastPathComponent })
    #expect(reports.filter { $0.result == .migrated && $0.backup != nil }.count == 40)
    #expect(try FileManager.default.contentsOfDirectory(atPath: state + "/phases").isEmpty)
  }

  @Test("output that cannot be written is an error, though the store is migrated")
  func lostOutput() async throws {
    let store = try store()
    let text = try messagesOnFullDisk([
      "migrate", store, "--plugin", try await BuiltPlugins.notes.value, "--state-dir", state,
    ])
    #expect(text.contains("error: cannot write to standard output"))
    #expect(text.contains("No space left on device") && text.contains("run: instarctl history"))
    let history = try await CommandLineTool.run("history", store, "--state-dir", state, "--json")
    #expect(try history.objects(RunReport.self).map(\.result) == [.migrated])
    // A command that only shows something can be repeated.
    let probed = try messagesOnFullDisk(["probe", store])
    #expect(probed.contains("next:   run the same command again, with another output   [I605]"))
  }

  /// Runs `instarctl` with an output that takes nothing, and returns its messages.
  private func messagesOnFullDisk(_ arguments: [String]) throws -> String {
    let process = Process()
    process.executableURL = CommandLineTool.productsFolder.appendingPathComponent("instarctl")
    process.arguments = arguments
    process.standardOutput = FileHandle(forWritingAtPath: "/dev/full")
    let messages = Pipe()
    process.standardError = messages
    try process.run()
    let text = String(decoding: messages.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    #expect(process.terminationStatus == 1)
    return text
  }

  @Test("a number that is too small is named, also a negative one")
  func numbers() async throws {
    let cases = [
      (["history", "--limit", "-3"], "--limit must be at least 1"),
      (["journal", "--limit", "-3"], "--limit must be at least 1"),
      (["stores", "--wave", "-1"], "--wave must be at least 1"),
      (["stores", "--wave", "0"], "--wave must be at least 1"),
      (["rollout", "create", "--plan", "P", "--slots", "-1"], "'--slots -1' is not between"),
      (["backups", "prune", "--keep", "-1"], "'-1' is not a number from 1"),
    ]
    for (command, message) in cases {
      let answer = try await CommandLineTool.run(command)
      #expect(answer.status == 2 && answer.messages.contains(message), "\(answer.messages)")
    }
  }

  @Test(
    "a command without standard input, output or error does its work",
    arguments: [">&-", "2>&-", "<&- >&- 2>&-"])
  func closedStreams(redirection: String) async throws {
    let store = try BoxStore("fine", in: folder)
    let answer = try await Program.run(
      "sh",
      [
        "-c", "exec \"$0\" \"$@\" \(redirection)",
        CommandLineTool.productsFolder.appendingPathComponent("instarctl").path, "migrate",
        store.path, "--plugin", try await FixturePlugins.boxes.value, "--state-dir", state,
      ])
    #expect(answer.status == 0, "\(answer.messages)")
    #expect(try store.version() == Schema.Version(2, 0, 0))
  }

  @Test(
    "the end of the terminal ends a run as Ctrl-C does, and under nohup it does not",
    arguments: [false, true])
  func hangUp(isIgnored: Bool) async throws {
    let store = try store()
    let before = try Data(contentsOf: URL(filePath: store))
    let command = try ChildProcess.start(
      executable: "/usr/bin/env",
      arguments: [
        isIgnored ? "--ignore-signal=HUP" : "--default-signal=HUP",
        CommandLineTool.productsFolder.appendingPathComponent("instarctl").path, "migrate", store,
        "--plugin", try await BuiltPlugins.hangingNotes.value, "--state-dir", state,
      ], environment: ProcessInfo.processInfo.environment, output: .captured(limitBytes: 1 << 20))
    defer { command.kill() }
    let clones = folder.path(".instar")
    while !FileManager.default.fileExists(atPath: clones), try command.wait(deadline: .now) == nil {
      try await Task.sleep(for: .milliseconds(10))
    }
    if isIgnored {
      let status = try String(contentsOfFile: "/proc/\(command.pid)/status", encoding: .utf8)
      let mask = try #require(status.firstMatch(of: /SigIgn:\t([0-9a-f]+)/)).output.1
      #expect(try #require(UInt64(mask, radix: 16)) & 1 == 1)
    }
    command.kill(isIgnored ? SIGINT : SIGHUP)
    #expect(try command.wait(deadline: soon()) == .exited(1))
    #expect(command.capturedOutput.contains("[I314]"), "\(command.capturedOutput)")
    #expect(try Data(contentsOf: URL(filePath: store)) == before)
    #expect(folder.names() == ["a.store", "state"])
  }

  @Test("an event that does not exist and a time that cannot be read are refused, not looked for")
  func journal() async throws {
    let event = try await CommandLineTool.run("journal", "--event", "run-faild", "--json")
    #expect(event.status == 2)
    let error = try #require(try event.errors().first)
    #expect(error.code == .wrongUsage && error.cause.contains("did you mean 'run-failed'?"))
    let time = try await CommandLineTool.run("journal", "--since", "yesterdy", "--json")
    #expect(time.status == 2)
    #expect(try time.errors().map(\.cause) == ["'yesterdy' is not a time"])
  }

  @Test("a plan that does not exist is not about one of several stores")
  func noPlan() async throws {
    let stores = try [store(), store("b.store")]
    let answer = try await CommandLineTool.run(
      ["plan", "--plan", "None", "--plugin", try await FixturePlugins.boxes.value] + stores)
    #expect(answer.status == 3 && answer.messages.contains("cannot plan migrations"))
  }

  @Test(
    "a full or read-only file system is what the advice is about",
    .enabled(if: CircumstanceTests.canMount, "mounting needs root"))
  func fullDisk() async throws {
    let store = try BoxStore("fine", in: folder)
    let plugin = try await FixturePlugins.boxes.value
    let migrated = try await CommandLineTool.run(
      "migrate", store.path, "--plugin", plugin, "--state-dir", state)
    #expect(migrated.status == 0, "\(migrated.messages)")
    try FileManager.default.createDirectory(
      atPath: folder.path("disk"), withIntermediateDirectories: false)
    func messages(_ options: String, _ arguments: String...) async throws -> String {
      let tool = CommandLineTool.productsFolder.appendingPathComponent("instarctl").path
      let answer = try await Program.run(
        "unshare",
        [
          "--mount", "sh", "-ec", "mount -t tmpfs -o \(options) none \"$0\"; exec \"$@\"",
          folder.path("disk"), tool,
        ] + arguments + ["--state-dir", state])
      #expect(answer.status != 0)
      return answer.messages
    }
    let full = try await messages(
      "size=4k", "restore", "--to", folder.path("disk/old.store"), store.path)
    #expect(full.contains("run: df -h '\(folder.path("disk"))'"), "\(full)")
    let readOnly = try await messages("ro", "report", "--html", folder.path("disk/page.html"))
    #expect(readOnly.contains("run: findmnt --target '\(folder.path("disk"))'"), "\(readOnly)")
  }

  @Test("Ctrl-C ends a run and leaves the store byte for byte as it was")
  func interruption() async throws {
    let store = try store()
    let second = try self.store("b.store")
    let plugin = try await BuiltPlugins.hangingNotes.value
    let before = try Data(contentsOf: URL(fileURLWithPath: store))
    let clones = folder.path(".instar")
    let answer = try await CommandLineTool.run(
      [
        "migrate", store, second, "--plugin", plugin, "--state-dir", state, "--json",
      ]
    ) { pid in
      // The clone is there from the start of the run to its end.
      while !FileManager.default.fileExists(atPath: clones), kill(pid, 0) == 0 {
        try await Task.sleep(for: .milliseconds(10))
      }
      kill(pid, SIGINT)
    }
    #expect(answer.status == 1)
    let reports = try answer.objects(RunReport.self)
    #expect(reports.map(\.result) == [.failed, .failed])
    #expect(reports.map(\.error?.code) == [.interrupted, .interrupted])
    #expect(try Data(contentsOf: URL(fileURLWithPath: store)) == before)
    #expect(folder.names() == ["a.store", "b.store", "state"])
  }
}
