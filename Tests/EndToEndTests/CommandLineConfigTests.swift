import Foundation
import InstarSchema
import InstarTestSupport
import Testing

@Suite("instarctl config")
struct CommandLineConfigTests {
  let folder: TemporaryFolder
  let file: String

  init() throws {
    folder = try TemporaryFolder()
    file = folder.path("instard.yml")
    try FileManager.default.createDirectory(
      atPath: folder.path("conf.d"), withIntermediateDirectories: false)
    try write("watches: [{folder: /srv/none}]", to: "instard.yml")
    try write("watches: [{folder: /home/none/stores, recursive: true}]", to: "conf.d/a.yml")
  }

  private func write(_ text: String, to name: String) throws {
    try Data(text.utf8).write(to: URL(filePath: folder.path(name)))
  }

  private struct Check: Decodable {
    struct Watch: Decodable {
      var folder: String
      var recursive: Bool
    }
    var files: [String]
    var watches: [Watch]
    var notes: [String]
  }

  private struct Apply: Decodable {
    var file: String
    var contents: String?
    var changed: Bool
    var daemonReloaded: Bool
  }

  @Test("a check shows the waves of a rollout, and notes a watch's wave beyond the last one")
  func rollout() async throws {
    let file = folder.path("waves.yml")
    try Data(
      """
      rollout: {canary: 1, waves: [10%], soak: 1m, budget: 2}
      watches: [{folder: \(folder.path), policy: ask, wave: 4}]
      """.utf8
    ).write(to: URL(filePath: file))
    struct Checked: Decodable {
      struct Watch: Decodable {
        var policy: String
        var wave: Int
      }
      struct Rollout: Decodable {
        var waves: [String]
        var soakSeconds: Double
        var budget: String
      }
      var watches: [Watch]
      var rollout: Rollout
      var notes: [String]
    }
    let answer = try await CommandLineTool.run("config", "check", "--json", file)
    let checked = try #require(try answer.objects(Checked.self).first)
    #expect(checked.rollout.waves == ["1", "10%", "100%"])
    #expect(checked.rollout.soakSeconds == 60 && checked.rollout.budget == "2")
    #expect(checked.watches.contains { $0.policy == "ask" && $0.wave == 4 })
    #expect(checked.notes.contains { $0.contains("counts as 3: 'rollout' has 3 waves") })
    let text = try await CommandLineTool.run("config", "check", file)
    #expect(text.output.contains("\(folder.path)  *.store  policy ask  wave 4\n"))
    #expect(text.output.contains("  rollout  waves 1, 10%, 100%  soak 60 s  budget 2\n"))
  }

  @Test("a check names what has no effect: a folder of plugins, a file in conf.d, a rollout")
  func unused() async throws {
    try write("plugins: [/srv/nowhere]\nrollout: {budget: 0}", to: "instard.yml")
    try write("parallel: 2", to: "conf.d/b.yaml")
    let answer = try await CommandLineTool.run("config", "check", "--json", file)
    let notes = try #require(try answer.objects(Check.self).first).notes
    for text in [
      "'/srv/nowhere' does not exist: instard uses no plugins from there",
      "'\(folder.path("conf.d/b.yaml"))' is not read, because its name does not end in .yml",
      "'rollout' has one wave with all stores",
    ] {
      #expect(notes.contains { $0.contains(text) }, "\(notes)")
    }
  }

  @Test("a check names folders, hooks and a user of hooks with which instard can do nothing")
  func useless() async throws {
    let folders = ["hooks", "hooks/paused.d", "srv", "srv/.instar"]
    for name in folders {
      try FileManager.default.createDirectory(
        atPath: folder.path(name), withIntermediateDirectories: false,
        attributes: [.posixPermissions: 0o755])
    }
    try folder.write("#!/bin/nosuch\n", to: "hooks/paused.d/50-note", mode: 0o755)
    try write("", to: "file")
    try write(
      """
      plugins: [\(folder.path("file"))]
      backupFolder: \(folder.path("srv/.instar"))
      hooks: {folder: \(folder.path("hooks")), user: nosuchuser}
      watches: [{folder: \(folder.path("srv")), backupFolder: /nope}]
      """, to: "instard.yml")
    let answer = try await CommandLineTool.run("config", "check", "--json", file)
    #expect(answer.status == 0)
    let notes = try #require(try answer.objects(Check.self).first).notes
    for text in [
      "'\(folder.path("file"))' is not a folder, and instard cannot use it; correct the path",
      "instard makes no copies of backups in '\(folder.path("srv/.instar"))': ",
      "'/nope' does not exist: instard makes no copies of backups until it exists; create it",
      "instard runs no hook: there is no user 'nosuchuser'; name another user in 'hooks'",
      "50-note': its first line names '/bin/nosuch', which cannot be executed; correct the hook's",
    ] {
      #expect(notes.count { $0.contains(text) } == 1, "\(text): \(notes)")
    }
  }

  @Test("config check reports the files it read, what is watched, and what is missing")
  func check() async throws {
    let text = try await CommandLineTool.run("config", "check", file)
    #expect(text.status == 0)
    #expect(text.output.hasPrefix("'\(file)', '\(folder.path("conf.d/a.yml"))' can be used\n"))
    #expect(text.output.contains("/home/none/stores  *.store  recursive\n"))
    let missing =
      "'/srv/none' does not exist: instard watches it once it exists; create it, or correct the path"
    #expect(text.messages.contains("note: \(missing)\n"))

    let answer = try await CommandLineTool.run("config", "check", "--json", file)
    let check = try #require(try answer.objects(Check.self).first)
    #expect(check.files == [file, folder.path("conf.d/a.yml")])
    #expect(check.watches.map(\.folder) == ["/srv/none", "/home/none/stores"])
    #expect(check.watches.map(\.recursive) == [false, true])
    #expect(check.notes.contains(missing))
  }

  @Test("config check names a watch whose time window never opens again")
  func closedWindow() async throws {
    try write(
      "watches: [{folder: /srv/none, window: {opens: 2020-01-01 22:00, length: 1h}}]",
      to: "instard.yml")
    let answer = try await CommandLineTool.run("config", "check", file)
    #expect(answer.status == 0)
    #expect(answer.messages.contains("in '/srv/none': its window never opens again\n"))
  }

  @Test("config check names a folder whose stores will be refused, and a file that does not exist")
  func refusedFolder() async throws {
    let shared = folder.path("shared")
    try FileManager.default.createDirectory(
      atPath: shared, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o775])
    #expect(chmod(shared, 0o775) == 0)
    try write("watches: [{folder: \(shared)}]", to: "instard.yml")
    let answer = try await CommandLineTool.run("config", "check", file)
    #expect(answer.status == 0)
    #expect(answer.messages.contains("instard refuses the stores in '\(shared)': group "))
    #expect(answer.messages.contains("chmod g-w '\(shared)'"))
    let missing = try await CommandLineTool.run("config", "check", folder.path("none.yml"))
    #expect(missing.status == 5)
    #expect(!missing.messages.contains("--config"))
  }

  @Test("config check refuses a configuration that cannot be used, and names the file and the line")
  func refused() async throws {
    try write("paralel: 3", to: "conf.d/b.yml")
    let answer = try await CommandLineTool.run("config", "check", "--json", file)
    #expect(answer.status == 3)
    let error = try #require(try answer.errors().first)
    #expect(error.what == "cannot use the configuration '\(folder.path("conf.d/b.yml"))'")
    #expect(error.cause.hasPrefix("line 1: unknown key 'paralel'"))
    #expect(error.code == .invalidConfiguration)
  }

  @Test(
    "config check names all mistakes at once: in text one error for each file, in JSON one for each mistake"
  )
  func allMistakes() async throws {
    try write("paralel: 3\nrescan: often", to: "instard.yml")
    try write("watches: [{folder: /usr/share}, {foldr: /srv}]", to: "conf.d/a.yml")
    try write("watches: [{folder: /etc}]", to: "conf.d/b.yml")
    let text = try await CommandLineTool.run("config", "check", file)
    #expect(text.status == 3 && text.output.isEmpty)
    #expect(
      text.messages.contains(
        """
        error: cannot use the configuration '\(file)'
          cause:  line 1: unknown key 'paralel' in the configuration; did you mean 'parallel'?
                  line 2: 'rescan' must be a duration such as 250ms, 2s, 5m or 1h, not 'often'
          next:   correct the file, then run: instarctl config check '\(file)'   [I601]
        error: cannot use the configuration '\(folder.path("conf.d/a.yml"))'
          cause:  line 1: unknown key 'foldr' in a watch; did you mean 'folder'?

        """), Comment(rawValue: text.messages))
    #expect(text.messages.contains("error: cannot let the service write '/etc'"))
    let errors = try await CommandLineTool.run("config", "check", "--json", file).errors()
    #expect(errors.count == 4 && errors.allSatisfy { $0.code == .invalidConfiguration })
    #expect(errors.map { $0.cause.hasPrefix("line 1: ") } == [true, false, true, false])
  }

  @Test(
    "config apply writes the drop-in once, says so, and removes it when nothing is watched any more"
  )
  func apply() async throws {
    let dropIn = folder.path("instard.service.d/50-watches.conf")
    let arguments = ["config", "apply", "--json", "--drop-in", dropIn, file]
    let printed = try await CommandLineTool.run("config", "apply", "--print", file)
    #expect(printed.status == 0)
    #expect(!FileManager.default.fileExists(atPath: dropIn))

    for isFirst in [true, false] {
      let answer = try await CommandLineTool.run(arguments)
      let apply = try #require(try answer.objects(Apply.self).first)
      #expect(apply.changed == isFirst && !apply.daemonReloaded && apply.file == dropIn)
      #expect(apply.contents == printed.output)
      #expect(try String(contentsOfFile: dropIn, encoding: .utf8) == printed.output)
    }
    #expect(printed.output.contains("\nProtectHome=read-only\n"))
    #expect(printed.output.contains("\nReadWritePaths=\"-/srv/none\"\n"))

    try write("", to: "instard.yml")
    try write("", to: "conf.d/a.yml")
    let answer = try await CommandLineTool.run(arguments)
    #expect(try answer.objects(Apply.self).first?.contents == nil)
    #expect(!FileManager.default.fileExists(atPath: folder.path("instard.service.d")))
  }

  @Test(
    "config apply proposes itself for root, with its file, to a user who may not write the drop-in",
    .enabled(if: geteuid() == 0, "becoming another user needs root"))
  func commandForRoot() async throws {
    for path in [folder.path, folder.path("conf.d")] { try #require(chmod(path, 0o755) == 0) }
    for path in [file, folder.path("conf.d/a.yml")] { try #require(chmod(path, 0o644) == 0) }
    let dropIn = folder.path("drop in.conf")
    let tool = CommandLineTool.productsFolder.appendingPathComponent("instarctl").path
    let answer = try await Program.run(
      "setpriv",
      [
        "--reuid=65534", "--regid=65534", "--clear-groups", tool, "config", "apply", "--drop-in",
        dropIn, file,
      ])
    let next = "next:   run: sudo instarctl config apply --drop-in '\(dropIn)' '\(file)'"
    #expect(answer.messages.contains(next), Comment(rawValue: answer.messages))
  }

  @Test("config apply opens no folder of the system")
  func system() async throws {
    try write("watches: [{folder: /usr/share}]", to: "conf.d/a.yml")
    let answer = try await CommandLineTool.run("config", "apply", "--print", file)
    #expect(answer.status == 3)
    #expect(answer.messages.contains("cannot let the service write '/usr/share'"))
  }
}
