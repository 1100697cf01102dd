import Foundation
import InstarLinux
import InstarSchema
import InstarTestSupport
import Testing

@Suite("A command that names what does not exist")
struct MissingFileTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private struct Call {
    /// With "PLUGIN" and "STORE" for a plugin and a store that exist; all other files are missing.
    var arguments: [String]
    var code: InstarError.Code

    init(_ code: InstarError.Code, _ arguments: String...) {
      self.code = code
      self.arguments = arguments
    }
  }

  private static let calls: [Call] = {
    var calls: [Call] = []
    for command in ["probe", "plan", "migrate", "rehearse", "verify"] {
      calls.append(Call(.missingStore, command, "none.store", "--plugin", "PLUGIN"))
      calls.append(Call(.missingPlugin, command, "STORE", "--plugin", "none.so"))
      calls.append(Call(.missingFile, command, "STORE", "--config", "none.yml"))
    }
    for command in ["list", "verify", "copy", "prune"] {
      calls.append(Call(.missingStore, "backups", command, "none.store"))
      calls.append(Call(.missingFile, "backups", command, "STORE", "--state-dir", "none"))
      calls.append(Call(.missingFile, "backups", command, "--state-dir", "none"))
    }
    let files: [(String, InstarError.Code)] = [
      ("none.store", .missingStore), ("none.so", .missingPlugin), ("none.json", .missingFile),
    ]
    for (file, code) in files {
      calls.append(Call(code, "schema", "show", file))
      calls.append(Call(code, "schema", "diff", file, "PLUGIN"))
      calls.append(Call(code, "schema", "diff", "PLUGIN", file))
    }
    return calls + others
  }()

  private static let others = [
    Call(.missingStore, "restore", "none.store"),
    Call(.missingBackup, "restore", "STORE"),
    Call(.missingBackup, "restore", "STORE", "--run", "20260101T000000Z-000000"),
    Call(.missingStore, "schema", "import", "none.store"),
    Call(.missingPlugin, "schema", "export", "none.so"),
    Call(.missingPlugin, "plugin", "inspect", "none.so"),
    Call(.missingPlugin, "plugin", "check", "none.so"),
    Call(.missingStore, "plugin", "check", "PLUGIN", "--store", "none.store"),
    Call(.missingFile, "plugin", "check", "PLUGIN", "--schemas", "none"),
    Call(.missingFile, "plugin", "sign", "PLUGIN", "--key", "none.key"),
    Call(.missingPlugin, "plugin", "verify", "none.so"),
    Call(.missingFile, "plugin", "verify", "PLUGIN", "--keys", "none"),
    Call(.missingFile, "plugin", "test", "none"),
    Call(.missingFile, "plugin", "build", "none", "-o", "x.so"),
    Call(.missingFile, "plugin", "build", "none", "-o", "x.so", "--watch"),
    Call(
      .missingStore, "plugin", "build", "a.swift", "-o", "x.so", "--watch", "--rehearse",
      "none.store"),
    Call(.missingStore, "plugin", "new", "Trips", "--from", "none.store"),
    Call(.missingFile, "plugin", "list", "--config", "none.yml"),
    Call(.missingFile, "config", "check", "none.yml"),
    Call(.missingFile, "config", "apply", "--print", "none.yml"),
    Call(.missingFile, "history", "--state-dir", "none"),
    Call(.missingFile, "report", "--state-dir", "none"),
    Call(.missingStore, "hold", "--why", "test", "none.store"),
    Call(.missingFile, "hold", "--state-dir", "none"),
    Call(.missingFile, "hold", "--why", "test", "STORE", "--state-dir", "none"),
    Call(.missingFile, "release", "STORE", "--state-dir", "none"),
    Call(.missingFile, "restore", "STORE", "--state-dir", "none"),
    Call(.missingFile, "restore", "STORE", "--state-dir", "none/state"),
    Call(.missingFile, "restore", "STORE", "--to", "x.store", "--state-dir", "none"),
    Call(.missingFile, "migrate", "STORE", "--plugin", "PLUGIN", "--state-dir", "none/state"),
  ]

  @Test(
    "a command that names what does not exist exits with 5 and the code for it, says what to do, and makes no file"
  )
  func status() async throws {
    let plugin = try await BuiltPlugins.notes.value
    try FileManager.default.copyItem(
      atPath: CommandLineTool.repository
        .appendingPathComponent("Plugins/notes/stores/notes-1.store").path,
      toPath: folder.path("a.store"))
    try folder.write("import Instar", to: "a.swift")
    let state = try TemporaryFolder()
    for call in Self.calls {
      let typed = call.arguments.map { ["PLUGIN": plugin, "STORE": "a.store"][$0] ?? $0 }
      let answer = try await CommandLineTool.run(
        typed + ["--json"], in: folder.url, environment: ["INSTAR_STATE_DIR": state.path])
      let comment = Comment(rawValue: "\(typed): \(answer.output)\(answer.messages)")
      #expect(answer.status == 5, comment)
      #expect(answer.output.contains("\"code\":\"\(call.code.rawValue)\""), comment)
      #expect(answer.output.contains("\"next\":\""), comment)
      // A file that does not exist has no state.
      if call.code == .missingStore, ["verify", "restore"].contains(typed[0]) {
        #expect(!answer.output.contains("\"state\":\"unchanged\""), comment)
      }
    }
    #expect(folder.names() == ["a.store", "a.swift"])
  }

  @Test("a command with names of missing and existing files works on the existing ones")
  func others() async throws {
    let plugin = try await BuiltPlugins.notes.value
    let store = folder.path("a.store")
    try FileManager.default.copyItem(
      atPath: CommandLineTool.repository
        .appendingPathComponent("Plugins/notes/stores/notes-1.store").path, toPath: store)
    let state = ["--state-dir", folder.path("state")]
    #expect(
      try await CommandLineTool.run(["migrate", store, "--plugin", plugin] + state).status == 0)
    let missing = folder.path("none.store")
    let verified = try await CommandLineTool.run(["backups", "verify", missing, store] + state)
    #expect(verified.status == 5 && verified.output.contains(": sound\n"), "\(verified)")
    #expect(verified.messages.contains("cannot verify the backups of '\(missing)'"))
    // Its backups are left, and bring it back.
    try FileManager.default.removeItem(atPath: store)
    let left = try await CommandLineTool.run(["backups", "list", store] + state)
    #expect(left.status == 0 && left.output.contains(store), "\(left)")
  }
}
