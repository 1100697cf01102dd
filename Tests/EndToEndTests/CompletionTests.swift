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

  /// The script that a shell reads.
  private func script(_ shell: Shell = .bash) async throws -> String {
    let program = CommandLineTool.productsFolder.appendingPathComponent("instarctl").path
    // zsh looks for a file of this name.
    let name = shell == .zsh ? "_instarctl" : "completions.\(shell)"
    if !FileManager.default.fileExists(atPath: folder.path(name)) {
      let made = try await Program.run(
        program, ["--generate-completion-script", shell.rawValue])
      try folder.write(made.messages, to: name)
    }
    return folder.path(name)
  }

  /// What bash offers for the last word, and what is printed meanwhile.
  private func complete(_ words: [String]) async throws -> (names: [String], messages: String) {
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

  /// Expects these names, and asks again until bash offers them: where instard is busy, its answer takes longer than
  /// instarctl waits, and files are offered instead.
  private func expectOffer(
    of names: [String], for words: [String], at location: SourceLocation = #_sourceLocation
  ) async throws {
    let deadline = soon()
    var offered = try await complete(words)
    while offered.names != names, ContinuousClock.now < deadline {
      offered = try await complete(words)
    }
    #expect(offered.names == names && offered.messages == "", sourceLocation: location)
  }

  @Test("bash offers the stores, plans, waves and held stores of a running daemon")
  func online() async throws {
    let fixture = try DaemonFixture(in: folder, plugins: [try await FixturePlugins.boxes.value])
    try fixture.configure("rollout: {waves: [50%]}")
    let fine = try fixture.add("fine")
    let other = try fixture.add("fine", as: "other")
    // Offered only where instard does not answer.
    try folder.write("", to: "srv/old.txt")
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", times: 2, in: daemon)
    let socket = ["--socket", fixture.socket]

    try await expectOffer(
      of: [fine.path, other.path], for: ["retry"] + socket + [folder.path("srv/")])
    try await expectOffer(of: [other.path], for: ["retry"] + socket + [folder.path("srv/o")])
    try await expectOffer(of: ["BoxPlan"], for: ["stores"] + socket + ["--plan", ""])
    let unknown = try await complete(["stores"] + socket + ["--plan", "Not"])
    #expect(unknown.names.isEmpty)
    try await expectOffer(of: ["1", "2"], for: ["stores"] + socket + ["--wave", ""])

    let state = ["--state-dir", folder.path("state")]
    let held = try await CommandLineTool.run(["hold", other.path, "--why", "a test"] + state)
    #expect(held.status == 0, "\(held.messages)")
    let released = try await complete(["release"] + state + [folder.path("srv/")])
    #expect(released.names == [other.path] && released.messages == "")
  }

  @Test("without a daemon files are offered, and nothing is printed")
  func offline() async throws {
    try folder.write("", to: "a.store")
    try folder.write("", to: ".hidden")
    try FileManager.default.createDirectory(
      atPath: folder.path("above"), withIntermediateDirectories: false)
    let socket = ["--socket", folder.path("none.sock")]
    var offered = try await complete(["retry"] + socket + ["a"])
    #expect(offered.names == ["a.store", "above/"] && offered.messages == "")
    offered = try await complete(["approve"] + socket + [folder.path("a.")])
    #expect(offered.names == [folder.path("a.store")] && offered.messages == "")
    offered = try await complete(["stores"] + socket + ["--wave", ""])
    #expect(offered.names.isEmpty && offered.messages == "")
    offered = try await complete(["release", "--state-dir", folder.path("none"), "a"])
    #expect(offered.names == ["a.store", "above/"] && offered.messages == "")
  }

  @Test("a daemon that does not answer holds up the shell for a moment only")
  func silent() async throws {
    // Nobody accepts the connection.
    let listener = try UnixSocket.listen(at: folder.path("silent.sock"))
    defer { close(listener) }
    try folder.write("", to: "a.store")
    let offered = try await complete(["retry", "--socket", folder.path("silent.sock"), "a"])
    #expect(offered.names == ["a.store"] && offered.messages == "")
  }

  // MARK: Names that a shell would expand

  /// The names begin with different letters, so that one letter is enough to complete each.
  private static let names = [
    "a$(touch pwned).store", "b`touch pwned`.store", "c'd.store", "d\"e.store", "e\\f.store",
    "f g.store", "h*.store", "i$HOME.store", "j;touch pwned.store", "k{l,m}.store", "~n.store",
    "o'\u{301}$(touch pwned).store", "p(q).store", "r&s.store", "t!!.store", "u#v.store",
    "v:w.store",
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
    let offered = try await complete(["hold", "--socket", folder.path("none.sock"), "srv/"])
    #expect(
      Set(offered.names) == Set((Self.names + ["y$(touch pwned)/"]).map { "srv/\($0)" })
        && offered.messages == "")
    expectNothingRan()
  }

  @Test(
    "bash offers the stores of a running daemon with characters of a shell, and runs nothing in them"
  )
  func expandedStores() async throws {
    let fixture = try DaemonFixture(in: folder, plugins: [try await FixturePlugins.boxes.value])
    let name = "a$(touch pwned)`touch pwned`'b"
    let store = try fixture.add("fine", as: name)
    // Offered only where instard does not answer.
    try folder.write("", to: "srv/old.txt")
    let daemon = try fixture.start()
    defer { daemon.kill() }
    try await fixture.wait(for: "INSTAR_EVENT=run-migrated", in: daemon)
    try await expectOffer(
      of: [store.path], for: ["retry", "--socket", fixture.socket, folder.path("srv/")])
    expectNothingRan()
  }

  @Test(
    "a name that Tab completes is the argument of the command, also after a second Tab",
    arguments: Shell.allCases)
  func typedNames(shell: Shell) async throws {
    try makeNames()
    for name in ["x y.store", "x y2.store"] { try folder.write("", to: "srv/\(name)") }
    // zsh does not quote '!', which it replaces by words of earlier commands.
    let names = Self.names.filter { shell != .zsh || !$0.contains("!") }
    var words = names.map { "srv/\($0.hasPrefix("~") ? "\\~" : $0.prefix(1))\t" }
    words += ["srv/x\t2\t", "srv/y\t", "srv/t\t"]
    var completed = names + ["x y2.store", "y$(touch pwned)/"]
    completed.append(shell == .zsh ? "t" : "t!!.store")
    if shell != .zsh {
      words += ["'srv/x\t2\t", "\"srv/a\t"]
      completed += ["x y2.store", names[0]]
    }
    #expect(try await type(words, in: shell) == completed.map { "srv/\($0)" })
    expectNothingRan()
  }

  enum Shell: String, CaseIterable {
    case bash, zsh, fish

    /// Starts with the commands in the file 'start' of the folder, and reads nothing of the user's.
    func command(in folder: TemporaryFolder) throws -> [String] {
      switch self {
      case .bash: return ["bash", "--rcfile", folder.path("start"), "-i"]
      case .zsh:
        try folder.write("source '\(folder.path("start"))'\n", to: ".zshrc")
        return ["zsh", "-o", "no_global_rcs", "-i"]
      case .fish:
        return ["fish", "--no-config", "--init-command", "source '\(folder.path("start"))'", "-i"]
      }
    }

    /// Loads the completions, and has the completed command note its argument. The shell itself runs instarctl to
    /// complete a word.
    func start(_ script: String, in folder: TemporaryFolder) -> String {
      let loads =
        switch self {
        case .bash, .fish: "source '\(script)'"
        case .zsh:
          "fpath=('\(folder.path)' $fpath); autoload -Uz compinit; compinit -D -u"
        }
      let notes =
        switch self {
        case .bash, .zsh:
          """
          instarctl() { if [ "$1" = ---completion ]; then command instarctl "$@"; else printf '%s\\n' "$4" >>typed; fi; }
          """
        case .fish:
          """
          function instarctl
            if test "$argv[1]" = ---completion; command instarctl $argv; else; printf '%s\\n' "$argv[4]" >>typed; end
          end
          """
        }
      return "cd '\(folder.path)'\n\(loads)\n\(notes)\n"
    }
  }

  /// Types commands whose last word is each of these, in a terminal.
  ///
  /// - Returns: The argument that each of them had.
  private func type(_ words: [String], in shell: Shell) async throws -> [String] {
    try folder.write(shell.start(try await script(shell), in: folder), to: "start")
    let command = "instarctl hold --socket '\(folder.path("none.sock"))' "
    let terminal = """
      import os, pty, signal, sys, threading, time
      lines, command = sys.argv[1].splitlines(), sys.argv[2:]
      pid, terminal = pty.fork()
      if pid == 0: os.execvp(command[0], command)
      def show():
          # A terminal keeps 4095 bytes that nobody has read.
          try:
              while os.read(terminal, 4096): pass
          except OSError: pass
      threading.Thread(target=show, daemon=True).start()
      def noted():
          if not os.path.exists("typed"): return []
          with open("typed", encoding="utf-8") as file: return file.read().splitlines()
      def arguments(): return [word for word in noted() if word != "ready"]
      # A command that notes nothing would be waited for without an end.
      end = time.monotonic() + 600
      # A shell may discard what was typed before its first prompt.
      while not noted() and time.monotonic() < end:
          os.write(terminal, b"instarctl hold --socket none ready\\r")
          time.sleep(0.5)
      for number, line in enumerate(lines, 1):
          os.write(terminal, line.encode() + b"\\r")
          while len(arguments()) < number and time.monotonic() < end: time.sleep(0.02)
      print(*arguments(), sep="\\n")
      os.kill(pid, signal.SIGKILL)
      """
    let typed = try await Program.run(
      "env",
      [
        "--chdir=\(folder.path)", "HOME=\(folder.path)", "ZDOTDIR=\(folder.path)",
        "PATH=\(CommandLineTool.productsFolder.path):/usr/bin:/bin", "INPUTRC=/dev/null",
        "TERM=dumb", "LC_ALL=C.UTF-8", "HISTFILE=", "python3", "-c", terminal,
        words.map { command + $0 }.joined(separator: "\n"),
      ] + shell.command(in: folder))
    #expect(typed.status == 0, "\(typed.messages)")
    return typed.messages.split(separator: "\n").map(String.init)
  }
}
