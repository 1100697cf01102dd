import Foundation
import GRDB
import Glibc
import InstarLinux
import InstarSchema
import InstarTestSupport
import Testing

/// Kills keepers at random instants of runs. `INSTAR_TEST_SEED` repeats the instants of another
/// run, as far as two runs take the same time.
@Suite("A keeper that is killed at a random instant")
struct KilledKeeperTests {
  static let seed =
    ProcessInfo.processInfo.environment["INSTAR_TEST_SEED"].flatMap(UInt64.init)
    ?? UInt64.random(in: 1...999_999)
  static let attempts = 10
  static let boxes = 60

  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// What a run is waited for with, before the random time begins.
  private enum Start: CaseIterable {
    /// The run folder is there: backup and clone are being made.
    case cloning
    /// The worker has ended: the clone is being verified.
    case verifying
    /// The backup has its final name: the store is about to be written.
    case cutover
  }

  /// A store of some MB at 1.0.0, as an app left it.
  private func makeStore(journalMode: String) throws -> String {
    let store = try BoxStore("fine", boxes: Self.boxes, in: folder, journalMode: journalMode)
    let queue = try DatabaseQueue(path: store.path)
    try queue.inDatabase { try $0.execute(sql: "UPDATE ZBOX SET ZNAME = hex(zeroblob(50000))") }
    try queue.close()
    return store.path
  }

  private func start(_ store: String, plugin: String) throws -> ChildProcess {
    try ChildProcess.start(
      executable: CommandLineTool.productsFolder.appendingPathComponent("instarctl").path,
      arguments: [
        "migrate", store, "--plugin", plugin, "--state-dir", folder.path("state"), "--json",
      ], environment: ProcessInfo.processInfo.environment, output: .captured(limitBytes: 1 << 20))
  }

  /// The children of a process that run this program.
  private func children(of parent: Int32, _ program: String) -> [Int32] {
    let entries = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
    return entries.compactMap(Int32.init).filter { pid in
      guard let line = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8),
        line.contains("(\(program)) ")
      else { return false }
      // The state and the parent follow the name.
      return line.split(separator: ")").last?.split(separator: " ").dropFirst().first
        == "\(parent)"
    }
  }

  /// Waits until the run has come to `start`; `false` where it ended first.
  private func wait(for start: Start, _ run: ChildProcess, in name: String) -> Bool {
    var workers: [Int32] = []
    while (try? run.wait(deadline: .now)) == nil {
      let names = folder.names("\(name)/.instar")
      switch start {
      case .cloning:
        if names.contains(where: { $0.hasPrefix("run-") }) { return true }
      case .verifying:
        if workers.isEmpty {
          // Before there is a clone, workers are only asked what they are.
          guard names.contains(where: { $0.hasPrefix("run-") }) else { break }
          workers = children(of: run.pid, "instar-keeper")
            .flatMap { children(of: $0, "instar-worker") }
        } else if workers.allSatisfy({ access("/proc/\($0)", F_OK) != 0 }) {
          return true
        }
      case .cutover:
        if names.contains(where: { $0.hasSuffix(".backup") }) { return true }
      }
      usleep(500)
    }
    return false
  }

  @Test(
    "a killed keeper leaves the store whole at its old or its new version, and nothing but the backup",
    arguments: ["delete", "wal"])
  func killed(journalMode: String) async throws {
    let plugin = try await FixturePlugins.boxes.value
    let other = try await FixturePlugins.freezeRay.value
    let original = try makeStore(journalMode: journalMode)
    var random = SeededGenerator(seed: Self.seed)
    var killed = 0
    for attempt in 0..<Self.attempts {
      let place: Comment = "seed \(Self.seed), attempt \(attempt) of \(journalMode)"
      let name = "\(attempt)"
      try FileManager.default.createDirectory(
        atPath: folder.path(name), withIntermediateDirectories: false)
      let store = folder.path("\(name)/fine.store")
      try FileManager.default.copyItem(atPath: original, toPath: store)
      let from = Start.allCases[attempt % Start.allCases.count]
      let delay = UInt32.random(in: 0...(from == .cloning ? 60_000 : 25_000), using: &random)
      let killsCommand = Bool.random(using: &random)

      let run = try start(store, plugin: plugin)
      if wait(for: from, run, in: name) {
        usleep(delay)
        let keepers = children(of: run.pid, "instar-keeper")
        // Without its command the run is recovered by the next one only.
        if killsCommand { run.kill() }
        killed += keepers.count { Glibc.kill($0, SIGKILL) == 0 }
      }
      _ = try run.wait(deadline: soon())

      // A command whose plugin does not know the store recovers it all the same.
      _ = try await CommandLineTool.run([
        "migrate", store, "--plugin", other, "--state-dir", folder.path("state"),
      ])
      let records = folder.names("state/phases").filter { $0.hasSuffix(".json") }
      #expect(records.isEmpty, place)
      let result = BoxStore(path: store)
      let version = try result.version()
      let left = folder.names("\(name)/.instar")
      if version == Schema.Version(1, 0, 0) {
        #expect(try result.sizes() == Array(0..<Self.boxes), place)
        #expect(left.isEmpty, place)
        #expect(try run.wait(deadline: .now) != .exited(0), place)
      } else {
        #expect(version == Schema.Version(2, 0, 0), place)
        #expect(try result.sizes() == Array(1000..<(1000 + Self.boxes)), place)
        #expect(try result.labels() == Self.boxes, place)
        #expect(left.map { ($0 as NSString).pathExtension } == ["backup", "json"], place)
      }
    }
    #expect(killed > 0, "seed \(Self.seed): no keeper was killed")
  }
}
