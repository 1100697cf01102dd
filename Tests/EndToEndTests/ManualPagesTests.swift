import Foundation
import InstarTestSupport
import Testing

@Suite("Manual pages")
struct ManualPagesTests {
  @Test("every page fits in a terminal of 80 columns, and man has nothing to warn of")
  func width() async throws {
    let folder = try TemporaryFolder()
    let made = try await Program.run(
      CommandLineTool.repository.appendingPathComponent("packaging/manual-pages").path,
      [CommandLineTool.productsFolder.path, folder.path])
    try #require(made.status == 0, Comment(rawValue: made.messages))
    let pages = folder.names()
    #expect(
      pages == [
        "instar-coordinator.8", "instar-plugin.7", "instar-promises.7", "instarctl.1", "instard.8",
        "instard.yml.5",
      ])
    for page in pages {
      let shown = try await Program.run(
        "env",
        ["MANWIDTH=80", "MANPAGER=cat", "LC_ALL=C.UTF-8", "man", "--warnings", "-l"]
          + [folder.path(page)])
      #expect(shown.status == 0 && !shown.messages.contains("warning:"), "\(shown.messages)")
      #expect(shown.messages.split(separator: "\n").filter { $0.count > 80 } == [], "\(page)")
    }
  }

  @Test("instarctl(1) documents every key of every answer in JSON")
  func keys() async throws {
    let folder = try TemporaryFolder()
    let page = try String(
      contentsOf: CommandLineTool.repository
        .appendingPathComponent("packaging/man/instarctl.1.man"), encoding: .utf8)
    let store = folder.path("a.store")
    try FileManager.default.copyItem(
      atPath: CommandLineTool.repository
        .appendingPathComponent("Plugins/notes/stores/notes-1.store").path, toPath: store)
    let damaged = folder.path("damaged.store")
    try FileManager.default.contents(atPath: store)?.prefix(30_000)
      .write(to: URL(filePath: damaged))
    let configuration = folder.path("instard.yml")
    try Data("watches: [{folder: /srv/none}]".utf8).write(to: URL(filePath: configuration))
    let plugin = try await BuiltPlugins.notes.value
    let state = ["--state-dir", folder.path("state")]
    for command in [
      ["probe", store, "--plugin", plugin], ["plan", store, "--plugin", plugin],
      ["verify", store, "--plugin", plugin],
      ["rehearse", store, "--plugin", plugin] + state,
      ["migrate", store, "--plugin", plugin] + state, ["history"] + state,
      ["migrate", damaged, "--plugin", plugin] + state, ["report"] + state,
      ["plugin", "inspect", plugin],
      ["plugin", "check", plugin],
      ["schema", "show", store], ["schema", "show", plugin],
      ["schema", "diff", "\(plugin)@1.0.0", plugin], ["schema", "import", store],
      ["schema", "export", plugin, "-o", folder.path("schemas")],
      ["config", "check", configuration], ["config", "apply", "--print", configuration],
      ["version"], ["plugin", "keygen", folder.path("key")],
      ["plugin", "sign", plugin, "--key", folder.path("key.key")],
      ["plugin", "verify", plugin, "--keys", folder.path],
    ] {
      let answer = try await CommandLineTool.run(command + ["--json"])
      #expect(!answer.output.isEmpty, "\(command): \(answer.messages)")
      for line in answer.output.split(separator: "\n") {
        let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
        let missing = Self.keys(of: object).filter { !page.contains("\\fI\($0)\\fR") }
        #expect(missing == [], "\(command)")
      }
    }
  }

  /// The keys of an answer and of the objects in it, except in schemas, whose form 'schema export' documents, and in
  /// what is keyed by names of entities.
  private static func keys(of value: Any) -> Set<String> {
    if let list = value as? [Any] {
      return list.reduce(into: []) { $0.formUnion(keys(of: $1)) }
    }
    guard let object = value as? [String: Any] else { return [] }
    let others = ["schema", "structure", "entityHashes", "toolVersions"]
    return object.reduce(into: Set(object.keys)) { all, field in
      if !others.contains(field.key) { all.formUnion(keys(of: field.value)) }
    }
  }

  @Test(
    "both programs generate completions for three shells",
    arguments: ["instarctl", "instard"], ["bash", "zsh", "fish"])
  func completions(program: String, shell: String) async throws {
    let answer = try await Program.run(
      CommandLineTool.productsFolder.appendingPathComponent(program).path,
      ["--generate-completion-script", shell])
    #expect(answer.status == 0)
    #expect(answer.messages.contains("help"))
    #expect(answer.messages.contains(shell == "zsh" ? "#compdef \(program)" : program))
  }
}
