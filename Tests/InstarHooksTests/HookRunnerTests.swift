import Foundation
import InstarHooks
import InstarLinux
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

@Suite("Hooks")
struct HookRunnerTests {
  private let folder: TemporaryFolder
  private let fields = [
    "INSTAR_EVENT": "wave-done", "INSTAR_PLAN": "Notes", "MESSAGE": "wave 1 \"x\"",
  ]

  init() throws {
    folder = try TemporaryFolder(mode: 0o755)
  }

  private func add(_ name: String, _ script: String, mode: Int = 0o755) throws {
    try FileManager.default.createDirectory(
      atPath: folder.path("wave-done.d"), withIntermediateDirectories: true,
      attributes: [.posixPermissions: 0o755])
    try folder.write("#!/bin/sh\n\(script)\n", to: "wave-done.d/\(name)", mode: mode)
  }

  /// The last reply is left out if it is `.done`.
  private func run(
    _ event: String = "wave-done", user: String = "nobody", timeLimit: Duration = .seconds(20)
  ) throws -> [HookReply] {
    let runner = try HookRunner(
      folder: HookFolder(folder.path), user: user, timeLimit: timeLimit,
      grace: .milliseconds(300))
    var replies: [HookReply] = []
    try runner.serve(HookRequest(event: event, fields: fields)) { replies.append($0) }
    if replies.last == .done { replies.removeLast() }
    return replies
  }

  private func reports(timeLimit: Duration = .seconds(20)) throws -> [HookReport] {
    try run(timeLimit: timeLimit).map { reply in
      guard case .ran(let report) = reply else {
        Issue.record("\(reply)")
        throw CancellationError()
      }
      return report
    }
  }

  @Test("a hook gets the event's name and, on standard input, the fields of its entry as JSON")
  func input() throws {
    try add("10-show", "echo \"$1 $INSTAR_EVENT $#\"; cat; cat /dev/stdin")
    let report = try #require(try reports().first)
    #expect(report.error == nil)
    let lines = report.output.split(separator: "\n").map(String.init)
    #expect(lines.first == "wave-done wave-done 1")
    // A file, not a pipe: it can be opened and read again.
    #expect(lines.count == 3 && lines.dropFirst().allSatisfy { $0 == lines[1] })
    let read = try JSONDecoder().decode([String: String].self, from: Data(lines[1].utf8))
    #expect(read == fields)
  }

  @Test("hooks run in the order of their names, also after one that fails")
  func order() throws {
    try add("20-second", "echo second")
    try add("10-first", "echo broken pipe; exit 3")
    try add("30-third.bak", "echo third")
    try add(".hidden", "echo hidden")
    let reports = try reports()
    #expect(reports.map { $0.hook.split(separator: "/").last } == ["10-first", "20-second"])
    let error = try #require(reports.first?.error)
    #expect(error.code == .hookFailed)
    #expect(error.cause == "the hook exited with status 3; its last output: broken pipe")
    #expect(reports.last?.output == "second\n" && reports.last?.error == nil)
  }

  @Test("a hook has a clean environment, no rights to gain, no descriptors and another user")
  func confinement() throws {
    try add(
      "show",
      """
      pwd; id -un; env | grep -v '^_=' | cut -d= -f1 | sort | tr '\\n' ' '; echo
      grep -E '^(NoNewPrivs|CapEff|CapPrm|CapAmb)' /proc/self/status | tr -d '\\n\\t'; echo
      ls /proc/$$/fd
      true
      """)
    setenv("INSTAR_SECRET", "x", 1)
    defer { unsetenv("INSTAR_SECRET") }
    let lines = try #require(try reports().first).output.split(separator: "\n")
    try #require(lines.count > 4, "\(lines)")
    if ProcessIdentity.mayBeAnyUser {
      #expect(lines[0] == "/" && lines[1] == "nobody")
    }
    #expect(lines[2] == "HOME INSTAR_EVENT LANG LOGNAME PATH PWD USER ")
    let none = "0000000000000000"
    #expect(lines[3] == "CapPrm:\(none)CapEff:\(none)CapAmb:\(none)NoNewPrivs:1")
    // 10: the shell's own, for the script.
    #expect(Set(lines[4...]).subtracting(["10"]) == ["0", "1", "2"])
  }

  @Test("a hook that hangs is ended with all that it started, also if it ignores SIGTERM")
  func hanging() throws {
    let pids = folder.path("pids")
    #expect(FileManager.default.createFile(atPath: pids, contents: nil))
    #expect(chmod(pids, 0o666) == 0)
    try add("hang", "trap '' TERM\necho started\nsleep 1000 &\necho $! $$ >\(pids)\nwait\nwait")
    let report = try #require(try reports(timeLimit: .milliseconds(700)).first)
    let error = try #require(report.error)
    #expect(
      error.cause == "the hook did not end within 700 ms, and was killed; its last output: started",
      "\(error.cause)")
    #expect(report.durationMicroseconds >= 1_000_000)
    for pid in try folder.text(of: "pids").split(separator: " ") {
      let number = try #require(Int32(pid.trimmingCharacters(in: .whitespacesAndNewlines)))
      #expect(hasEnded(number))
    }
  }

  /// A process that was killed stays until its parent asks for its end, and the hook's children have none that asks.
  private func hasEnded(_ pid: Int32) -> Bool {
    let deadline = soon()
    while ContinuousClock.now < deadline {
      guard let status = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8),
        let end = status.lastIndex(of: ")")
      else { return true }
      if status[end...].hasPrefix(") Z") { return true }
      usleep(10_000)
    }
    return false
  }

  @Test("what a hook leaves in the background is ended, and does not hold up the next event")
  func background() throws {
    try add("leave", "sleep 1000 &\necho $!")
    let report = try #require(try reports().first)
    #expect(report.error == nil)
    let pid = try #require(Int32(report.output.trimmingCharacters(in: .whitespacesAndNewlines)))
    #expect(hasEnded(pid))
  }

  @Test("the first and the last part of a flood of output are kept")
  func flood() throws {
    try add("flood", "echo first; head -c 10000000 /dev/zero | tr '\\0' x; echo; echo last")
    let report = try #require(try reports().first)
    #expect(report.error == nil && report.output.utf8.count < 5000)
    #expect(report.output.hasPrefix("first\n") && report.output.hasSuffix("last\n"))
  }

  @Test(
    "a hook is refused if others could have placed it",
    .enabled(if: geteuid() == 0, "only root can give a file away"))
  func untrusted() throws {
    try add("10-writable", "echo ran", mode: 0o775)
    try add("20-foreign", "echo ran")
    #expect(chown(folder.path("wave-done.d/20-foreign"), 65534, 0) == 0)
    try add("30-fine", "echo ran")
    let reports = try reports()
    #expect(reports.map(\.error?.code) == [.untrustedHook, .untrustedHook, nil])
    #expect(reports.first?.error?.next?.contains("chmod g-w") == true)
    #expect(reports[1].error?.next?.contains("chown -h root:root") == true)
    #expect(reports.map(\.output) == ["", "", "ran\n"])
    #expect(chmod(folder.path("wave-done.d"), 0o777) == 0)
    #expect(try self.reports().allSatisfy { $0.error?.code == .untrustedHook })
  }

  @Test("a file that cannot be executed is an error that says what to do")
  func notExecutable() throws {
    try add("10-plain", "echo ran", mode: 0o644)
    try folder.write("#!/nowhere/shell\n", to: "wave-done.d/20-shell", mode: 0o755)
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("wave-done.d/30-gone"), withDestinationPath: "/nowhere")
    try folder.write("echo ran\n", to: "wave-done.d/40-none", mode: 0o755)
    let errors = try reports().map { try #require($0.error) }
    #expect(errors.allSatisfy { $0.code == .hookFailed })
    #expect(errors[0].cause == "the file is not executable")
    #expect(errors[0].next == "run: chmod 755 '\(folder.path("wave-done.d/10-plain"))'")
    #expect(errors[1].cause == "its first line names '/nowhere/shell', which cannot be executed")
    #expect(errors[1].next?.contains("head -n 1") == true)
    #expect(
      errors[3].cause == "Exec format error; a script must begin with a line such as #!/bin/sh")
  }

  @Test("without a folder, or with an empty one, nothing runs and nothing fails")
  func nothing() throws {
    #expect(try run().isEmpty)
    #expect(!HookFolder(folder.path).hasHooks(of: "wave-done"))
    try add("mail.dpkg-old", "echo ran")
    #expect(try run().isEmpty)
    #expect(!HookFolder(folder.path).hasHooks(of: "wave-done"))
    try add("mail", "true")
    #expect(HookFolder(folder.path).hasHooks(of: "wave-done"))
    #expect(try run().count == 1)
  }

  @Test("the name of an event cannot lead out of the folder")
  func traversal() throws {
    let replies = try run("../wave-done")
    guard case .failed(let error)? = replies.first else {
      Issue.record("\(replies)")
      return
    }
    #expect(error.code == .protocolViolation)
  }

  @Test(
    "a user that does not exist is an error with the command that adds one",
    .enabled(if: ProcessIdentity.mayBeAnyUser, "only root can become other users"))
  func unknownUser() throws {
    let error = try #require(throws: InstarError.self) { try run(user: "instar-nobody") }
    #expect(error.code == .hookFailed && error.next?.contains("adduser") == true)
  }

  @Test("what never runs is noted: a wrong event, place, name, mode or first line")
  func notes() throws {
    try add("mail.sh", "true")
    try add("plain", "true", mode: 0o644)
    try add("fine", "true")
    for name in ["rollout-halt.d", "wave-done"] {
      try FileManager.default.createDirectory(
        atPath: folder.path(name), withIntermediateDirectories: false)
    }
    try folder.write("", to: "mail")
    try folder.write("", to: "README")
    try folder.write("#!/nowhere/shell\n", to: "wave-done.d/shell", mode: 0o755)
    let notes = HookFolder(folder.path).notes()
    try #require(notes.count == 6, "\(notes)")
    #expect(
      notes[0] == "'\(folder.path)/mail' never runs: a hook is in the folder of its event, EVENT.d")
    #expect(notes[1].hasSuffix("did you mean 'rollout-halted.d'?"))
    #expect(notes[2].hasSuffix("did you mean 'wave-done.d'?"))
    #expect(notes[3].contains("mail.sh' never runs"))
    #expect(notes[4].contains("plain': the file is not executable"))
    #expect(notes[5].contains("shell': its first line names '/nowhere/shell', which cannot be"))
    #expect(HookFolder(folder.path("none")).notes().isEmpty)
  }
}
