import Foundation
import Glibc
import InstarSchema
import InstarTestSupport
import Testing

@Suite("A path of something else")
struct MistakenPathTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func run(_ arguments: String...) async throws -> CommandLineTool.Answer {
    try await CommandLineTool.run(
      arguments, in: folder.url, environment: ["INSTAR_STATE_DIR": folder.path("state")])
  }

  @Test("a path to a schema that is a folder or a FIFO is refused without waiting")
  func schemas() async throws {
    try folder.makeFolder("folder.json")
    #expect(mkfifo(folder.path("fifo.json"), 0o600) == 0)
    for name in ["folder.json", "fifo.json"] {
      let answer = try await run("schema", "show", name)
      #expect(answer.status == 3)
      #expect(
        answer.messages == """
          error: cannot read schema '\(folder.path(name))'
            cause:  not a regular file
            next:   check the path; run: ls -la '\(folder.path)'   [I213]

          """)
    }
  }

  @Test("a path to a state folder that is a file is refused as such, not as a lack of rights")
  func stateFolder() async throws {
    let file = try folder.write("", to: "file")
    for command in [
      ["history"], ["report"], ["backups", "list"], ["backups", "verify"], ["migrate", "a.store"],
    ] {
      let answer = try await CommandLineTool.run(command + ["--state-dir", file])
      #expect(answer.status == 1, "\(command)")
      #expect(answer.messages.contains("cause:  '\(file)' is not a folder\n"), "\(answer.messages)")
    }
  }

  @Test(
    "the error about a store without a plugin names a missing plugin folder of the configuration")
  func pluginFolder() async throws {
    let missing = folder.path("none")
    try folder.write("plugins: [\(missing)]\n", to: "instard.yml")
    let store = try BoxStore("fine", in: folder)
    for command in ["migrate", "plan"] {
      let answer = try await run(command, "--config", "instard.yml", store.path)
      #expect(answer.status == 3)
      #expect(answer.messages.contains("'\(missing)' (it does not exist)"), "\(answer.messages)")
      #expect(
        answer.messages.contains("install -D -m 644 FILE.so '\(missing)/FILE.so'   [I211]"),
        "\(answer.messages)")
      // A command that changes nothing does not propose one that does.
      let next = "next:   run: instarctl \(command) --plugin FILE.so '\(store.path)'"
      #expect(answer.messages.contains(next), "\(answer.messages)")
    }
  }

  @Test("a path below a file is refused before anything is written, and the error names the file")
  func outputBelowFile() async throws {
    let file = try folder.write("", to: "file")
    let answer = try await run("plugin", "keygen", "file/keys/release")
    #expect(answer.status == 1)
    #expect(
      answer.messages.contains(
        "cannot write '\(file)/keys/release.key'\n  cause:  '\(file)' is not a folder\n"),
      Comment(rawValue: answer.messages))
  }

  @Test("a path in a folder that does not exist is refused, and no folder is made for it")
  func outputInMissingFolder() async throws {
    for (command, file) in [
      (["plugin", "keygen", "none/release"], "none/release.key"),
      (["report", "--html", "none/report.html"], "none/report.html"),
    ] {
      let answer = try await CommandLineTool.run(
        command, in: folder.url, environment: ["INSTAR_STATE_DIR": folder.path("state")])
      #expect(answer.status == 1)
      #expect(
        answer.messages == """
          error: cannot write '\(folder.path(file))'
            cause:  the folder '\(folder.path("none"))' does not exist
            next:   check the path, or run: mkdir -p '\(folder.path("none"))'   [I605]

          """)
    }
    #expect(folder.names() == [])
  }

  @Test("a folder as the output of a plugin build is refused before the compiler runs")
  func pluginIsFolder() async throws {
    try folder.makeFolder("Notes.so")
    try folder.write("no Swift", to: "Notes.swift")
    let answer = try await run("plugin", "build", "Notes.swift", "-o", "Notes.so")
    #expect(answer.status == 1)
    #expect(
      answer.messages == """
        error: cannot build plugin '\(folder.path("Notes.so"))'
          cause:  '\(folder.path("Notes.so"))' is a folder
          next:   name the file of the plugin, such as: -o NAME.so   [I405]

        """)
  }

  @Test("a path to a store that is a link is refused with the path to pass instead")
  func link() async throws {
    try folder.write("", to: "it's.store")
    #expect(symlink("it's.store", folder.path("link.store")) == 0)
    let answer = try await run("probe", "link.store")
    #expect(answer.status == 3)
    let target = "'\(folder.path)/it'\\''s.store'"
    #expect(
      answer.messages.contains("next:   pass the path of the link's target: \(target)   [I107]"),
      Comment(rawValue: answer.messages))
  }

  @Test(
    "a path that is empty is a wrong usage",
    arguments: [["config", "check"], ["config", "apply"]])
  func empty(command: [String]) async throws {
    let answer = try await CommandLineTool.run(command + [""])
    #expect(answer.status == 2 && answer.messages.contains("a path cannot be empty"))
  }

  @Test("a configuration that watches nothing is accepted with a note")
  func watchesNothing() async throws {
    try folder.write("", to: "instard.yml")
    let answer = try await run("config", "check", "instard.yml")
    #expect(answer.status == 0)
    #expect(answer.messages.contains("note: instard migrates no store: no folder is watched;"))
  }
}
