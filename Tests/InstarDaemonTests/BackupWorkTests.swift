import Foundation
import InstarConfiguration
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarTestSupport
import InstarWire
import Logging
import Synchronization
import Testing

@testable import InstarDaemon

@Suite("Work on backups")
struct BackupWorkTests {
  private let folder: TemporaryFolder
  private let state: StateFolder
  private let lines = LogRecorder.Lines()
  private let requests: KeeperRequests

  init() throws {
    folder = try TemporaryFolder(mode: 0o755)
    state = try StateFolder(path: folder.path("state"))
    // It finds each backup sound, and says that it removed what it is told to remove. It is slow if there is a file.
    let done = String(decoding: try WireCoder.line(KeeperEvent.done), as: UTF8.self)
    let keeper = try folder.write(
      """
      #!/bin/bash
      while IFS= read -r request <&3; do
        if [ -e '\(folder.path("slow"))' ]; then sleep 0.3; fi
        printf '%s' '\(done)' >&3
      done
      """, to: "keeper", mode: 0o700)
    let installation = Installation(
      keeper: keeper, worker: "/w", library: "/l", swiftRuntimeFolder: nil, modulesFolder: "/m",
      macroExecutable: "/x")
    requests = KeeperRequests(
      supervisor: Supervisor(
        installation: installation, stateFolder: state, rights: .storeOwner),
      log: EventLog { [lines] in LogRecorder(identifier: $0, lines: lines) },
      metrics: DaemonMetrics(version: "0", startedAt: 0),
      mailbox: AsyncStream.makeStream(of: DaemonMessage.self).continuation, reader: .ofDaemon,
      backupWork: WatchQueue(patience: .milliseconds(100)),
      backupReader: FileReader(patience: .seconds(1)))
  }

  /// Makes a store with the backup of a run that the ledger names.
  @discardableResult
  private func addRun(_ run: String, of name: String) throws -> RunReport {
    let store = folder.path("\(name)/a.store")
    let backup = folder.path("\(name)/.instar/a.store.\(run).backup")
    try FileManager.default.createDirectory(
      atPath: folder.path("\(name)/.instar"), withIntermediateDirectories: true)
    for path in [store, backup] { try Data("x".utf8).write(to: URL(filePath: path)) }
    var report = RunReport(run: run, store: store, result: .migrated, startedAt: 1)
    report.backup = backup
    report.manifest = BackupManifest(
      run: run, store: store, madeAt: 1, bytes: 1, contentHash: "xxh3-128:00", externalFiles: 0,
      format: .plain)
    try state.append(report)
    return report
  }

  private func wait(for message: String, times: Int = 1) async throws {
    let deadline = soon()
    while lines.all.withLock({ $0.count { "\($0.event.message)" == message } }) < times {
      try #require(ContinuousClock.now < deadline, "no '\(message)'")
      try await Task.sleep(for: .milliseconds(5))
    }
  }

  @Test(
    "work on backups on a file system that does not answer keeps only work of its own watch waiting",
    .enabled(if: SilentFileSystem.canMount, "mounting needs root and FUSE"),
    .timeLimit(.minutes(1)))
  func silent() async throws {
    let good = try [addRun("R1", of: "good"), addRun("R2", of: "good")]
    let silent = try addRun("R3", of: "silent")
    var configuration = Configuration()
    configuration.watches = ["silent", "good"].map {
      Configuration.Watch(folder: folder.path($0), patterns: ["*.store"])
    }
    let watches = configuration.watches.map(\.path)
    let fileSystem = try SilentFileSystem(at: folder.path("silent"))
    defer { fileSystem.end() }

    requests.backupSettings.use(configuration, realFolders: [:])
    requests.countBackups()
    requests.copyBackups(of: silent.store, in: watches[0])
    requests.keepBackups(of: silent, in: watches[0])
    requests.checkBackups()
    try await wait(for: "verified 2 of 2 backups: 2 sound")
    #expect(!isChecked)
    #expect(requests.metrics.text.contains("instar_backups 2"))
    configuration.backups = BackupRetention(count: 1)
    requests.backupSettings.use(configuration, realFolders: [:])
    requests.keepBackups(of: good[1], in: watches[1])
    let removed = try #require(good[0].backup)
    try await wait(for: "removed the backup '\(removed)': more than 1 backup of the store")

    fileSystem.end()
    requests.checkBackups()
    // One is of the watch that answers again.
    try await wait(for: "verified 2 of 2 backups: 2 sound", times: 2)
    #expect(isChecked)
  }

  /// Whether a check was recorded as done.
  private var isChecked: Bool { state.timeToBackupCheck(every: .seconds(3600)) > .zero }

  private var hasRemoved: Bool {
    lines.all.withLock { $0.contains { "\($0.event.message)".hasPrefix("removed") } }
  }

  private func configuration(watching names: String..., keeping count: Int) -> Configuration {
    var configuration = Configuration()
    configuration.watches = names.map {
      Configuration.Watch(folder: folder.path($0), patterns: ["*.store"])
    }
    configuration.backups = BackupRetention(count: count)
    return configuration
  }

  @Test(
    "work on backups that takes longer than the patience is awaited before the sample is drawn and verified"
  )
  func slow() async throws {
    for name in ["a", "b"] {
      try addRun("\(name)1", of: name)
      try addRun("\(name)2", of: name)
    }
    try folder.write("", to: "slow", mode: 0o644)
    requests.backupSettings.use(
      configuration(watching: "a", "b", keeping: 1), realFolders: [:])
    requests.checkBackups()
    try await wait(for: "verified 2 of 2 backups: 2 sound")
    #expect(hasRemoved && isChecked)
  }

  @Test("work on backups removes no backup under a configuration that was replaced before it began")
  func replacedConfiguration() async throws {
    try addRun("R1", of: "a")
    let newest = try addRun("R2", of: "a")
    let old = configuration(watching: "a", keeping: 1)
    let watch = old.watches[0].path
    requests.backupSettings.use(old, realFolders: [:])
    let (blocked, release) = AsyncStream.makeStream(of: Void.self)
    requests.backupWork.add(watch) { _ in for await _ in blocked {} }
    requests.keepBackups(of: newest, in: watch)
    requests.checkBackups()
    requests.backupSettings.use(configuration(watching: "a", keeping: 2), realFolders: [:])
    release.finish()
    try await wait(for: "verified 2 of 2 backups: 2 sound")
    #expect(!hasRemoved)
  }

  @Test(
    "work that begins after its watch was removed leaves the backups and metrics of the watch alone"
  )
  func removedWatch() async throws {
    try addRun("R1", of: "a")
    let newest = try addRun("R2", of: "a")
    try addRun("R3", of: "b")
    let old = configuration(watching: "a", keeping: 1)
    let watch = old.watches[0].path
    requests.backupSettings.use(old, realFolders: [:])
    let (blocked, release) = AsyncStream.makeStream(of: Void.self)
    requests.backupWork.add(watch) { _ in for await _ in blocked {} }
    requests.keepBackups(of: newest, in: watch)
    requests.checkBackups()
    requests.backupSettings.use(configuration(watching: "b", keeping: 1), realFolders: [:])
    let (ended, end) = AsyncStream.makeStream(of: Void.self)
    requests.backupWork.add(watch) { _ in end.finish() }
    release.finish()
    for await _ in ended {}
    // Other threads add the last steps of the check. These have taken their turn when as many pieces have followed.
    for _ in 0..<50 {
      let (followed, follow) = AsyncStream.makeStream(of: Void.self)
      DispatchQueue.global().async { [requests, state] in
        requests.backupWork.add(state.path) { _ in follow.finish() }
      }
      for await _ in followed {}
    }
    #expect(!requests.metrics.text.contains("instar_backups 2"))
    // The check that was left over verified nothing.
    #expect(!isChecked && !hasRemoved)
    requests.checkBackups()
    try await wait(for: "verified 1 of 1 backup: 1 sound")
    #expect(isChecked && !hasRemoved)
  }

  @Test("work on backups in one folder that two watches name is done once")
  func oneFolder() async throws {
    try addRun("R1", of: "a")
    try addRun("R2", of: "a")
    let configuration = configuration(watching: "a", "link", keeping: 5)
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("link"), withDestinationPath: folder.path("a"))
    requests.backupSettings.use(
      configuration, realFolders: [configuration.watches[1].path: folder.path("a")])
    requests.checkBackups()
    try await wait(for: "verified 2 of 2 backups: 2 sound")
    #expect(requests.metrics.text.contains("instar_backups 2"))
    #expect(isChecked)
  }
}
