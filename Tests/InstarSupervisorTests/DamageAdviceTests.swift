import Foundation
import Glibc
import InstarSchema
import InstarTestSupport
import InstarWire
import Synchronization
import Testing

@testable import InstarSupervisor

@Suite("Advice on damaged stores")
struct DamageAdviceTests {
  let folder: TemporaryFolder
  let state: StateFolder

  init() throws {
    folder = try TemporaryFolder(mode: 0o700)
    state = try StateFolder(path: folder.path("state"))
  }

  /// Notes a run that left a backup.
  ///
  /// - Parameter damage: What was wrong with the store when the backup was made.
  /// - Returns: The path of the backup.
  @discardableResult
  private func note(_ run: String, of store: String, damage: String? = nil) throws -> String {
    let backup = try folder.write("backup", to: "\(run).backup")
    var report = RunReport(run: run, store: store, result: .migrated, startedAt: 1)
    report.backup = backup
    var manifest = BackupManifest(
      run: run, store: store, madeAt: 1, bytes: 6, contentHash: "xxh3-128:00", externalFiles: 0,
      format: .plain)
    if let damage { manifest.check = damage }
    report.manifest = manifest
    try state.append(report)
    return backup
  }

  /// What a keeper's advice becomes.
  private func advice(on store: String) -> String {
    state.completing(CommandText.restoring(store), store: store)
  }

  @Test(
    "the advice is to restore a backup that restore accepts: not the newest if that is damaged or missing"
  )
  func restorable() throws {
    let store = folder.path("a.store")
    let option = " --state-dir '\(state.path)'"
    let ownBackup = CommandText.restoringOwnBackup
    #expect(advice(on: store) == ownBackup)
    try note("R1", of: store, damage: "row 1 missing from index i")
    #expect(advice(on: store) == ownBackup)

    let second = try note("R2", of: store)
    #expect(advice(on: store) == "restore its newest backup: instarctl restore '\(store)'\(option)")
    #expect(try state.backup(of: store, run: nil).run == "R2")

    // Each restore of a damaged store leaves such a backup.
    try note("R3", of: store, damage: "the file is truncated")
    #expect(throws: InstarError.self) { try state.backup(of: store, run: nil) }
    let older =
      "restore its newest usable backup: instarctl restore --run 'R2' '\(store)'\(option)"
    #expect(advice(on: store) == older)
    let newest = try note("R4", of: store)
    try FileManager.default.removeItem(atPath: newest)
    #expect(advice(on: store) == older)
    try FileManager.default.removeItem(atPath: second)
    #expect(advice(on: store) == ownBackup)
  }

  @Test(
    "the advice on a store that SQLite cannot open is how to put a backup in its place, on another file only if it has one"
  )
  func unopened() throws {
    let store = folder.path("a.store")
    let checking = CommandText.checking(store)
    #expect(state.completing(checking, store: store) == checking)
    let replacing = CommandText.replacing(store)
    #expect(state.completing(replacing, store: store) == CommandText.restoringOwnBackup)

    try note("R1", of: store)
    try note("R2", of: store, damage: "the file is truncated")
    let restore =
      "instarctl restore --run 'R1' '\(store)' --state-dir '\(state.path)' --to '\(store)' && "
    // Nothing to put aside.
    #expect(
      state.completing(replacing, store: store) + " && " == "run: \(restore)")
    try folder.write("text", to: "a.store")
    for (advice, start) in [(checking, "if it was a store, "), (replacing, "")] {
      let text = state.completing(advice, store: store)
      #expect(
        text.hasPrefix("\(start)stop the app, then run: mv --backup=numbered -T '\(store)' "))
      #expect(text.contains(restore), "\(text)")
    }
  }

  @Test("the advice on a file that is not a store does not list the backups beside it")
  func listing() async throws {
    let store = folder.path("a.store")
    let instar = folder.path(".instar")
    try FileManager.default.createDirectory(atPath: instar, withIntermediateDirectories: false)
    try note("R1", of: store)
    func listings(_ advice: String) async throws -> Int {
      try await opens(of: instar) { _ = state.completing(advice, store: store) }
    }
    #expect(try await listings(CommandText.replacing(store)) > 0)
    #expect(try await listings(CommandText.checking(store)) == 0)
  }

  @Test("the advice for many stores reads the ledger once, and each store has its own advice")
  func manyStores() async throws {
    let stores = (0..<40).map { folder.path("\($0).store") }
    for (number, store) in stores.enumerated() where number % 2 == 0 {
      try note("R\(number)", of: store)
    }
    for wanted in [stores, Array(stores.prefix(20))] {
      var advice: [String: String] = [:]
      let count = try await opens(of: folder.path("state/ledger/ledger.jsonl")) {
        advice = state.adviceOnDamage(of: wanted)
      }
      #expect(count == 1)
      #expect(advice.count == wanted.count)
      for store in wanted { #expect(advice[store] == self.advice(on: store)) }
      #expect(advice.values.count(where: { $0.contains("instarctl restore") }) == wanted.count / 2)
    }
    let backups = try state.backups(ofAll: [stores[2], stores[0], stores[1]])
    #expect(backups.map(\.reference.run) == ["R0", "R2"])
  }

  @Test("the advice takes two readings of the ledger for all stores of a verification")
  func verification() async throws {
    let stores = ["a", "b", "c"].map { folder.path("\($0).store") }
    try note("R1", of: stores[0])
    let part = try SupervisorTests()
    let reports = stores.map { store in
      VerificationReport(
        store: store,
        unverified: InstarError(
          .corruptStore, "cannot verify the store", store: store, cause: "a page is damaged",
          next: CommandText.restoring(store)))
    }
    let keeper = try part.supervisor(
      "*) \(try reports.map { try part.say(.verified($0)) }.joined(separator: "; ")); "
        + "\(try part.say(.done)) ;;")
    let supervisor = Supervisor(installation: keeper.installation, stateFolder: state)
    let advice = Mutex<[String?]>([])
    let count = try await opens(of: folder.path("state/ledger/ledger.jsonl")) {
      try await supervisor.verify(stores: stores, plans: [], busyTimeout: .seconds(1)) { report in
        advice.withLock { $0.append(report.errors.first?.next) }
      }
    }
    // What it has about the first one, then all of it.
    #expect(count == 2)
    #expect(advice.withLock(\.self) == stores.map { self.advice(on: $0) })
  }

  /// How often a file is opened by `body`.
  private func opens(of file: String, _ body: () async throws -> Void) async throws -> Int {
    let descriptor = inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK))
    defer { close(descriptor) }
    // The kernel merges equal events that follow each other, so the closes are watched too.
    try #require(inotify_add_watch(descriptor, file, UInt32(IN_OPEN | IN_CLOSE_NOWRITE)) >= 0)
    try await body()
    var events = [UInt8](repeating: 0, count: 1 << 16)
    let count = read(descriptor, &events, events.count)
    return events.withUnsafeBytes { events in
      // An event about the watched file itself has no name (inotify(7)). The mask is behind the descriptor.
      stride(from: 0, to: max(0, count), by: MemoryLayout<inotify_event>.size).count(where: {
        events.load(fromByteOffset: $0 + 4, as: UInt32.self) & UInt32(IN_OPEN) != 0
      })
    }
  }
}
