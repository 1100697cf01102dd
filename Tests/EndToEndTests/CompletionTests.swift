import Foundation
import Glibc
import InstarLinux
import InstarTestSupport
import Testing

@Suite("Completed names")
struct CompletionTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
    #expect(chmod(folder.path, 0o755) == 0)
  }

  /// What bash offers for the last word, and what is printed meanwhile.
  private func complete(_ words: String...) async throws -> (names: [String], messages: String) {
    let program = CommandLineTool.productsFolder.appendingPathComponent("instarctl").path
    let script = folder.path("completions.bash")
    if !FileManager.default.fileExists(atPath: script) {
      let made = try await Program.run(program, ["--generate-completion-script", "bash"])
      try folder.write(made.messages, to: "completions.bash")
    }
    let code = """
      cd "$2"; source "$1"; shift 2
      COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
      _instarctl instarctl "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}" 2>"$HOME/messages"
      printf '%s\\n' "${COMPREPLY[@]}"
      """
    let folderOfProgram = CommandLineTool.productsFolder.path
    let shell = try await Program.run(
      "env",
      [
        "HOME=\(folder.path)", "PATH=\(folderOfProgram):/usr/bin:/bin", "bash", "--norc", "-c",
        code,
        "bash", script, folder.path, "instarctl",
      ] + words)
    #expect(shell.status == 0, "\(shell.messages)")
    return (
      shell.messages.split(separator: "\n").map(String.init), try folder.text(of: "messages")
    )
  }

  @Test("bash offers the stores, plans, waves and held stores of a running daemon")
  func online() async throws {
    let fixture = try DaemonFixture(in: folder, plugins: [try await FixturePlugins.boxes.value])
    try fixture.configure("rollout: {waves: [50%]}")
    let fine = try fixture.add("fine")
    let other = try fixture.add("fine", as: "other")
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", times: 2, in: daemon)
    let socket = ["--socket", fixture.socket]

    var offered = try await complete("retry", socket[0], socket[1], folder.path("srv/"))
    #expect(offered.names == [fine.path, other.path] && offered.messages == "")
    offered = try await complete("retry", socket[0], socket[1], folder.path("srv/o"))
    #expect(offered.names == [other.path])
    offered = try await complete("stores", socket[0], socket[1], "--plan", "")
    #expect(offered.names == ["BoxPlan"] && offered.messages == "")
    offered = try await complete("stores", socket[0], socket[1], "--plan", "Not")
    #expect(offered.names.isEmpty)
    offered = try await complete("stores", socket[0], socket[1], "--wave", "")
    #expect(offered.names == ["1", "2"])

    let state = ["--state-dir", folder.path("state")]
    let held = try await CommandLineTool.run(["hold", other.path, "--why", "a test"] + state)
    #expect(held.status == 0, "\(held.messages)")
    offered = try await complete("release", state[0], state[1], folder.path("srv/"))
    #expect(offered.names == [other.path] && offered.messages == "")
  }

  @Test("without a daemon files are offered, and nothing is printed")
  func offline() async throws {
    try folder.write("", to: "a.store")
    try folder.write("", to: ".hidden")
    try FileManager.default.createDirectory(
      atPath: folder.path("above"), withIntermediateDirectories: false)
    let socket = ["--socket", folder.path("none.sock")]
    var offered = try await complete("retry", socket[0], socket[1], "a")
    #expect(offered.names == ["a.store", "above/"] && offered.messages == "")
    offered = try await complete("approve", socket[0], socket[1], folder.path("a."))
    #expect(offered.names == [folder.path("a.store")] && offered.messages == "")
    offered = try await complete("stores", socket[0], socket[1], "--wave", "")
    #expect(offered.names.isEmpty && offered.messages == "")
    offered = try await complete("release", "--state-dir", folder.path("none"), "a")
    #expect(offered.names == ["a.store", "above/"] && offered.messages == "")
  }

  @Test("a daemon that does not answer holds up the shell for a moment only")
  func silent() async throws {
    // Nobody accepts the connection.
    let listener = try UnixSocket.listen(at: folder.path("silent.sock"))
    defer { close(listener) }
    try folder.write("", to: "a.store")
    let offered = try await complete("retry", "--socket", folder.path("silent.sock"), "a")
    #expect(offered.names == ["a.store"] && offered.messages == "")
  }
}
