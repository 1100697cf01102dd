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

  /// The script that bash reads.
  private func script() async throws -> String {
    let program = CommandLineTool.productsFolder.appendingPathComponent("instarctl").path
    let script = folder.path("completions.bash")
    if !FileManager.default.fileExists(atPath: script) {
      let made = try await Program.run(program, ["--generate-completion-script", "bash"])
      try folder.write(made.messages, to: "completions.bash")
    }
    return script
  }

  /// What bash offers for the last word, and what is printed meanwhile.
  private func complete(_ words: String...) async throws -> (names: [String], messages: String) {
    let script = try await script()
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

  // MARK: Names that a shell would expand

  /// The names begin with different letters, so that one letter is enough to complete each.
  private static let names = [
    "a$(touch pwned).store", "b`touch pwned`.store", "c'd.store", "d\"e.store", "e\\f.store",
    "f g.store", "h*.store", "i$HOME.store", "j;touch pwned.store", "k{l,m}.store", "~n.store",
    "o'\u{301}$(touch pwned).store", "p(q).store", "r&s.store", "t!!.store", "u#v.store",
  ]

  private func makeNames() throws {
    try FileManager.default.createDirectory(
      atPath: folder.path("srv"), withIntermediateDirectories: false)
    for name in Self.names { try folder.write("", to: "srv/\(name)") }
    // A name with a line break would be two names, and the second one could be anything.
    try folder.write("", to: "srv/w\n$(touch pwned).store")
    try FileManager.default.createDirectory(
      atPath: folder.path("srv/y$(touch pwned)"), withIntermediateDirectories: false)
  }

  private func expectNothingRan() {
    #expect(!folder.names().contains { $0.hasPrefix("pwned") })
    #expect(!folder.names("srv").contains { $0.hasPrefix("pwned") })
  }

  @Test("bash offers names with characters of a shell as they are, and runs nothing in them")
  func expandedNames() async throws {
    try makeNames()
    let offered = try await complete("hold", "--socket", folder.path("none.sock"), "srv/")
    #expect(
      Set(offered.names) == Set((Self.names + ["y$(touch pwned)/"]).map { "srv/\($0)" })
        && offered.messages == "")
    expectNothingRan()
  }

  @Test("bash offers a running daemon's stores in the same way")
  func expandedStores() async throws {
    let fixture = try DaemonFixture(in: folder, plugins: [try await FixturePlugins.boxes.value])
    let name = "a$(touch pwned)`touch pwned`'b"
    let store = try fixture.add("fine", as: name)
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", in: daemon)
    let offered = try await complete("retry", "--socket", fixture.socket, folder.path("srv/"))
    #expect(offered.names == [store.path] && offered.messages == "")
    expectNothingRan()
  }

  @Test("a name that Tab completes is the argument of the command, also after a second Tab")
  func typedNames() async throws {
    try makeNames()
    for name in ["x y.store", "x y2.store"] { try folder.write("", to: "srv/\(name)") }
    var lines = Self.names.map { "srv/\($0.hasPrefix("~") ? "\\~" : $0.prefix(1))\t" }
    lines += ["srv/x\t2\t", "'srv/x\t2\t", "\"srv/a\t", "srv/y\t"]
    // The shell runs instarctl to complete a word; the completed command only notes its argument.
    let start = """
      source '\(try await script())'
      instarctl() { if [ "$1" = ---completion ]; then command instarctl "$@"; else printf '%s\\n' "$4" >>typed; fi; }
      cd '\(folder.path)'

      """
    let socket = folder.path("none.sock")
    let typed =
      start + lines.map { "instarctl hold --socket \(socket) \($0)\n" }.joined() + "exit\n"
    let terminal = """
      import os, pty, signal, sys
      # A line that bash does not end would be waited for without an end.
      signal.alarm(120)
      pid, terminal = pty.fork()
      if pid == 0: os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
      shown = b""
      # A terminal keeps 4095 bytes that nobody has read, so each line waits for the next prompt.
      for line in sys.argv[1].splitlines(keepends=True):
          while not shown.endswith(b"READY> "): shown += os.read(terminal, 4096)
          shown = b""
          os.write(terminal, line.encode())
      try:
          while os.read(terminal, 4096): pass
      except OSError: pass
      os.waitpid(pid, 0)
      """
    let shell = try await Program.run(
      "env",
      [
        "HOME=\(folder.path)", "PATH=\(CommandLineTool.productsFolder.path):/usr/bin:/bin",
        "INPUTRC=/dev/null", "TERM=dumb", "LC_ALL=C.UTF-8", "PS1=READY> ", "HISTFILE=",
        "python3", "-c", terminal, typed,
      ])
    #expect(shell.status == 0, "\(shell.messages)")
    let completed = Self.names + ["x y2.store", "x y2.store", Self.names[0], "y$(touch pwned)/"]
    #expect(try folder.text(of: "typed") == completed.map { "srv/\($0)\n" }.joined())
    expectNothingRan()
  }
}
