import InstarConfiguration
import InstarSupervisor
import InstarWire
import Synchronization

/// How far one regular check of backups has come.
final class RegularBackupCheck: Sendable {
  /// The backups of a watch that were not removed.
  struct Kept {
    var count: Int
    /// Some random ones, as many as a sample has.
    var trusted: [BackupReference]
  }

  private struct State {
    /// By the path of the watch.
    var kept: [String: Kept] = [:]
    var (sound, verified) = (0, 0)
    var hasFailed = false
  }

  private let state = Mutex(State())

  /// Whether some work failed, or was interrupted.
  var hasFailed: Bool { state.withLock(\.hasFailed) }

  var result: (sound: Int, sample: Int, all: Int) {
    state.withLock { ($0.sound, $0.verified, $0.kept.values.map(\.count).reduce(0, +)) }
  }

  /// The paths of the watches whose copies were made and whose old backups were removed.
  var watches: Set<String> { state.withLock { Set($0.kept.keys) } }

  func note(_ kept: Kept, of watch: String) { state.withLock { $0.kept[watch] = kept } }

  /// Leaves out a watch. Then the check does not count as done.
  func leaveOut(_ watch: String) { state.withLock { $0.kept[watch] = nil } }

  func noteFailure() { state.withLock { $0.hasFailed = true } }

  func noteVerified(isSound: Bool) {
    state.withLock { state in
      state.verified += 1
      if isSound { state.sound += 1 }
    }
  }

  /// Returns random backups by the path of their watch: each backup is as likely as any other, where all are trusted.
  func sample(of count: Int) -> [String: [BackupReference]] {
    let kept = state.withLock(\.kept)
    let all = kept.flatMap { watch, kept in repeatElement(watch, count: kept.count) }
    let counts = Dictionary(all.shuffled().prefix(count).map { ($0, 1) }, uniquingKeysWith: +)
    var sample: [String: [BackupReference]] = [:]
    var left = count
    func take(_ number: Int, of watch: String) {
      let taken = sample[watch]?.count ?? 0
      let backups = (kept[watch]?.trusted ?? []).dropFirst(taken).prefix(min(number, left))
      if !backups.isEmpty { sample[watch, default: []] += backups }
      left -= backups.count
    }
    for (watch, number) in counts { take(number, of: watch) }
    // Other watches may have fewer backups, and more trusted ones.
    for watch in kept.keys.shuffled() { take(left, of: watch) }
    return sample
  }
}

/// The watches whose backups are being checked, or are going to be. One whose file system does not answer has no second
/// check behind the first one.
final class CheckedWatches: Sendable {
  private let paths = Mutex<Set<String>>([])

  /// - Returns: Those of these watches that no other check works on.
  func begin(_ wanted: some Sequence<String>) -> [String] {
    paths.withLock { paths in wanted.filter { paths.insert($0).inserted } }
  }

  func end(_ watch: String) { paths.withLock { _ = $0.remove(watch) } }
}

/// The settings in force. Work that was added under earlier ones may begin long after a reload, and must not remove
/// what the present ones keep.
final class BackupSettings: Sendable {
  struct Value: Hashable {
    var configuration = Configuration()
    /// With folders as in a `StorePath`.
    var resolved = Configuration()

    /// The watches with resolved folders, each with its path. Watches of one folder with equal settings appear once.
    var watches: [(path: String, watch: Configuration.Watch)] {
      var known: Set<Configuration.Watch> = []
      return zip(configuration.watches, resolved.watches).compactMap { written, watch in
        known.insert(watch).inserted ? (path: written.path, watch: watch) : nil
      }
    }
  }

  private let state = Mutex(Value())

  var value: Value { state.withLock(\.self) }

  /// - Parameter realFolders: As of `Configuration.with(realFolders:)`.
  func use(_ configuration: Configuration, realFolders: [String: String]) {
    state.withLock {
      $0 = Value(
        configuration: configuration, resolved: configuration.with(realFolders: realFolders))
    }
  }
}
