import Foundation
import InstarLinux
import InstarSchema
import InstarTestSupport
import InstarWire
import Synchronization
import Testing

@testable import InstarDaemon

/// The program itself, as built beside the tests.
private struct Instard {
  /// Its folder: `srv` to watch, `state`, `plugins`, `instard.yml`.
  let folder: String
  let program: String

  init(in folder: String, watching folders: [String] = ["srv"]) throws {
    self.folder = folder
    program = LogRecorder.buildFolder + "/instard"
    for name in ["srv", "plugins"] {
      try FileManager.default.createDirectory(
        atPath: "\(folder)/\(name)", withIntermediateDirectories: false)
    }
    try configure(watching: folders)
  }

  var configuration: String { folder + "/instard.yml" }

  func configure(watching folders: [String], more: String = "") throws {
    try Data(
      """
      state: \(folder)/state
      plugins: [\(folder)/plugins]
      debounce: 50ms
      watches:
      \(folders.map { "  - {folder: \(folder)/\($0), pattern: \"*.store\"}" }.joined(separator: "\n"))
      \(more)
      """.utf8
    ).write(to: URL(filePath: configuration))
  }

  func start(_ arguments: [String], environment: [String: String] = [:]) throws -> ChildProcess {
    try ChildProcess.start(
      executable: program, arguments: ["--config", configuration] + arguments,
      environment: ProcessInfo.processInfo.environment.merging(environment) { $1 },
      output: .captured(limitBytes: 1 << 20))
  }
}

private func isSoon(_ child: ChildProcess) throws -> ChildProcess.Termination? {
  try child.wait(deadline: soon())
}

/// Waits for the text in what the child prints, until `soon()` at most.
private func hasSoon(_ text: String, in child: ChildProcess) -> Bool {
  let deadline = soon()
  while !child.capturedOutput.contains(text) {
    guard ContinuousClock.now < deadline else { return false }
    usleep(10_000)
  }
  return true
}

@Suite("instard", .serialized)
struct InstardTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  @Test("instard starts on an empty folder, says it is ready, and ends with 0 when told to")
  func idle() throws {
    let instard = try Instard(in: folder.path)
    let manager = try NotifySocket(in: instard.folder)
    let child = try instard.start(["--foreground"], environment: ["NOTIFY_SOCKET": manager.path])
    defer { child.kill() }
    #expect(
      manager.wait(for: "READY=1") == "READY=1\nSTATUS=watching 0 stores in 1 folder")
    child.kill(SIGTERM)
    #expect(manager.wait(for: "STOPPING=1") != nil)
    #expect(try isSoon(child) == .exited(0))
    let output = child.capturedOutput
    #expect(output.contains("notice instard 0.1.0 started: 1 watch, state in "))
    #expect(output.contains(" info watching '\(instard.folder)/srv': 0 stores "))
    #expect(output.contains(" notice instard is stopping INSTAR_EVENT=daemon-stopping"))
    #expect(output.split(separator: "\n").count == 3)
  }

  @Test("instard feeds the watchdog as often as it is told to, and reloads before it says so")
  func watchdog() throws {
    let instard = try Instard(in: folder.path)
    let manager = try NotifySocket(in: instard.folder)
    let child = try instard.start(
      ["--foreground"],
      environment: ["NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "100000"])
    defer { child.terminate(grace: .seconds(10)) }
    #expect(manager.wait(for: "READY=1") != nil)
    for _ in 0..<3 { #expect(manager.wait(for: "WATCHDOG=1") == "WATCHDOG=1") }
    child.kill(SIGHUP)
    let reloading = manager.wait(for: "RELOADING=1")
    #expect(reloading?.contains("MONOTONIC_USEC=") == true)
    #expect(manager.wait(for: "READY=1")?.contains("STATUS=watching 0 stores") == true)
    #expect(manager.wait(for: "WATCHDOG=1") != nil)
  }

  @Test("a second daemon on the same state folder is refused")
  func onlyOne() throws {
    let instard = try Instard(in: folder.path)
    let manager = try NotifySocket(in: instard.folder)
    let first = try instard.start(["--foreground"], environment: ["NOTIFY_SOCKET": manager.path])
    defer { first.terminate(grace: .seconds(10)) }
    #expect(manager.wait(for: "READY=1") != nil)
    let second = try instard.start(["--foreground"])
    #expect(try isSoon(second) == .exited(1))
    #expect(second.capturedOutput.contains("another instard uses the state folder"))
  }

  @Test("a watched folder that is missing is reported, and found after a reload")
  func missingFolder() throws {
    let instard = try Instard(in: folder.path, watching: ["srv", "later"])
    let manager = try NotifySocket(in: instard.folder)
    let child = try instard.start(["--foreground"], environment: ["NOTIFY_SOCKET": manager.path])
    defer { child.kill() }
    #expect(
      manager.wait(for: "READY=1")?.hasSuffix(
        "STATUS=watching 0 stores in 1 of 2 folders; "
          + "cannot watch '\(instard.folder)/later': No such file or directory") == true)
    try FileManager.default.createDirectory(
      atPath: instard.folder + "/later", withIntermediateDirectories: false)
    child.kill(SIGHUP)
    #expect(manager.wait(for: "RELOADING=1") != nil)
    #expect(manager.wait(for: "READY=1") != nil)
    // The folder is scanned after that; what comes next would end the scan.
    let found = "info watching '\(instard.folder)/later': 0 stores"
    #expect(hasSoon(found, in: child))
    // A configuration that cannot be used leaves the daemon as it was.
    try instard.configure(watching: ["srv"], more: "parallel: 1000")
    child.kill(SIGHUP)
    let refused = "not '1000'; the previous configuration stays in force"
    #expect(hasSoon(refused, in: child))
    child.kill(SIGINT)
    #expect(try isSoon(child) == .exited(0))
    let output = child.capturedOutput
    #expect(output.contains("warning cannot watch '\(instard.folder)/later': No such file"))
    #expect(output.contains("INSTAR_EVENT=watch-failed INSTAR_CODE=I602"))
  }

  @Test("a plugin folder that is missing, or is a file, is reported with what to do")
  func uselessPluginFolders() throws {
    let instard = try Instard(in: folder.path)
    let (missing, file) = (instard.folder + "/nope", instard.configuration)
    let folders = ["--plugin-dir", missing, "--plugin-dir", file]
    let child = try instard.start(["--foreground"] + folders)
    defer { child.terminate(grace: .seconds(10)) }
    for (plugins, problem) in [
      (missing, "No such file or directory; create the folder, or correct its path"),
      (file, "Not a directory; name a folder instead, in 'plugins' of the configuration or with"),
    ] {
      let text = "warning cannot watch folder '\(plugins)': \(problem)"
      #expect(hasSoon(text, in: child), "\(child.capturedOutput)")
    }
    let check = try instard.start(["--check"] + folders)
    #expect(try isSoon(check) == .exited(0))
    #expect(check.capturedOutput.contains("note: '\(missing)' does not exist yet"))
  }

  @Test("a configuration that cannot be used ends the start with status 2 and its line")
  func badConfiguration() throws {
    let instard = try Instard(in: folder.path)
    try folder.write("watches: 7\nparallel: many", to: "instard.yml")
    for arguments in [["--check"], []] {
      let child = try instard.start(arguments)
      #expect(try isSoon(child) == .exited(2))
      #expect(child.capturedOutput.contains("line 1: 'watches' must be a list"))
      // A check shows all mistakes.
      if !arguments.isEmpty { #expect(child.capturedOutput.contains("line 2: 'parallel'")) }
    }
    try folder.write("", to: "instard.yml")
    let usage = try instard.start(["--no-such-flag"])
    #expect(try isSoon(usage) == .exited(2))
    let check = try instard.start(["--check"])
    #expect(try isSoon(check) == .exited(0))
    let help = try instard.start(["--help"])
    #expect(try isSoon(help) == .exited(0))
    #expect(help.capturedOutput.contains("SIGHUP"))
  }

  @Test("a store in a folder that others could write is probed as soon as they cannot any more")
  func folderRights() throws {
    let instard = try Instard(in: folder.path)
    #expect(chmod(instard.folder + "/srv", 0o775) == 0)
    try folder.write("not a database", to: "srv/a.store")
    let child = try instard.start(["--foreground"])
    defer { child.terminate(grace: .seconds(10)) }
    #expect(hasSoon("INSTAR_CODE=I107", in: child))
    #expect(chmod(instard.folder + "/srv", 0o755) == 0)
    #expect(hasSoon("INSTAR_EVENT=store-not-a-store", in: child))
  }

  @Test(
    "instard's events are in the journal, with message ids and fields",
    .enabled(
      if: geteuid() == 0
        && FileManager.default.fileExists(atPath: "/lib/systemd/systemd-journald"),
      "a journal of its own needs root and systemd-journald"))
  func journal() throws {
    let instard = try Instard(in: folder.path, watching: ["srv", "missing"])
    let sandbox = try ChildProcess.start(
      executable: LogRecorder.sourceFolder + "/packaging/journal-sandbox",
      arguments: [
        "bash", "-c",
        """
        "$1" --config "$2" 2> "$3/stderr" & pid=$!
        for _ in $(seq 1000); do
          journalctl --sync; [ -n "$(journalctl -q -o cat INSTAR_EVENT=watch-failed)" ] && break
          sleep 0.02
        done
        kill -TERM $pid; wait $pid; echo $? > "$3/status"
        journalctl --sync; journalctl -q --all -o json -t instard > "$3/journal"
        """, "bash", instard.program, instard.configuration, instard.folder,
      ], output: .captured(limitBytes: 1 << 16))
    #expect(try isSoon(sandbox) == .exited(0), "\(sandbox.capturedOutput)")
    func content(_ name: String) -> String {
      (try? String(contentsOfFile: "\(instard.folder)/\(name)", encoding: .utf8)) ?? ""
    }
    #expect(content("status") == "0\n")
    #expect(content("stderr") == "")
    let entries = try content("journal").split(separator: "\n").map {
      try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
    }
    let events = entries.compactMap { $0["INSTAR_EVENT"] as? String }
    #expect(
      Set(events) == ["daemon-started", "watch-started", "watch-failed", "daemon-stopping"])
    for entry in entries {
      let kind = (entry["INSTAR_EVENT"] as? String).flatMap(EventKind.init(rawValue:))
      #expect(kind != nil && entry["MESSAGE_ID"] as? String == kind?.messageID)
      #expect((entry["MESSAGE"] as? String)?.contains("\n") == false)
    }
    let failed = try #require(entries.first { $0["INSTAR_EVENT"] as? String == "watch-failed" })
    #expect(failed["PRIORITY"] as? String == "4")
    #expect(failed["INSTAR_CODE"] as? String == "I602")
    let text = try #require(failed["INSTAR_ERROR"] as? String)
    #expect(text.hasPrefix("error: cannot watch '\(instard.folder)/missing'\n  cause:"))
  }
}
