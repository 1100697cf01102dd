import Dispatch
import Foundation
import Glibc
import InstarLinux
import InstarSchema
import InstarWire
import Synchronization

/// Says on a terminal that a command waits for a store, because another process has it locked.
///
/// SQLite waits in the keeper, which tells nothing meanwhile. But the kernel lists who has which lock. So a store that
/// the command has begun with, and that another process has kept it from for a second, is waited for.
final class LockWatch: Sendable {
  /// What the command does with a store next, which decides the locks that keep it out.
  enum Access {
    case reads, writes
  }

  private struct Store {
    var path: String
    var access: Access
    /// Since when another process keeps the command out, as far as this process has looked.
    var lockedSince: ContinuousClock.Instant?
  }

  /// In the order in which they were begun.
  private let stores = Mutex<[Store]>([])
  private let line: ProgressLine
  /// Set once, in `init`, and only kept alive; `nil` without a terminal.
  nonisolated(unsafe) private let timer: (any DispatchSourceTimer)?

  private static let patience = Duration.seconds(1)
  private static let interval = DispatchTimeInterval.milliseconds(200)

  init(_ line: ProgressLine) {
    self.line = line
    guard isatty(STDERR_FILENO) == 1 else {
      timer = nil
      return
    }
    let timer = DispatchSource.makeTimerSource(queue: .global())
    self.timer = timer
    timer.schedule(deadline: .now() + Self.interval, repeating: Self.interval)
    timer.setEventHandler { [weak self] in self?.look() }
    timer.resume()
  }

  deinit { timer?.cancel() }

  /// A command begins with a store.
  func begin(_ store: String, _ access: Access) {
    guard timer != nil else { return }
    stores.withLock { $0.append(Store(path: store, access: access)) }
  }

  /// A run reports a step. From then on it waits for no lock, but for that of a cutover.
  ///
  /// - Parameter locksLate: Whether others may write the store while the run works.
  func note(_ event: RunEvent, locksLate: Bool) {
    switch event.step {
    case .started where !locksLate: break
    case .verified where locksLate: begin(event.store, .writes)
    default: end(event.store)
    }
  }

  /// The command has the store's lock, or is done with the store.
  func end(_ store: String) {
    guard timer != nil else { return }
    stores.withLock { $0.removeAll { $0.path == store } }
    show()
  }

  private func look() {
    // A file system may not answer: its stores are not shown then.
    let isSilent = FilePath.reader.silence()
    let paths = stores.withLock { $0.map(\.path) }.filter { !isSilent($0) }
    if paths.isEmpty { return }
    let locks = StoreLocks()
    // Before the lock is taken, because the answers may take long.
    let answers = FilePath.reader.answers(about: paths) { store in
      (
        store: StoreLocks.identity(of: store),
        log: StoreLocks.identity(of: SideFile.index.path(of: store))
      )
    }
    let files = Dictionary(zip(paths, answers), uniquingKeysWith: { $1 })
    stores.withLock { stores in
      for index in stores.indices {
        let isKeptOut = files[stores[index].path].map { files in
          locks.keepOut(stores[index].access, of: files.store, log: files.log)
        }
        stores[index].lockedSince = isKeptOut == true ? stores[index].lockedSince ?? .now : nil
      }
    }
    show()
  }

  /// The first of them is enough: others are shown when it is their turn.
  private func show() {
    let store = stores.withLock { stores in
      stores.first { $0.lockedSince.map { .now - $0 >= Self.patience } ?? false }?.path
    }
    line.showWaiting(for: store)
  }
}

/// The locks that SQLite takes on stores (<https://sqlite.org/lockingv3.html>, <https://sqlite.org/walformat.html>).
private struct StoreLocks {
  /// The bytes of a store for PENDING, RESERVED and SHARED, in this order.
  private static let allBytes: ClosedRange<UInt64> = 0x4000_0000...0x4000_01FF
  private static let reservedByte: ClosedRange<UInt64> = 0x4000_0001...0x4000_0001
  private static let sharedBytes: ClosedRange<UInt64> = 0x4000_0002...0x4000_01FF
  /// The byte of the index of a write-ahead log that a writer locks.
  private static let logWriterByte: ClosedRange<UInt64> = 120...120

  private let others: [FileIdentity: [FileLock]]
  private let own: [FileIdentity: [FileLock]]

  init() {
    let locks = Dictionary(grouping: FileLock.all(), by: { Self.isOwn($0.pid) })
    others = Dictionary(grouping: locks[false] ?? [], by: \.file)
    own = Dictionary(grouping: locks[true] ?? [], by: \.file)
  }

  func keepOut(
    _ access: LockWatch.Access, of store: FileIdentity?, log: FileIdentity?
  ) -> Bool {
    guard let store, let locks = others[store] else { return false }
    let ofLog = log.flatMap { others[$0] } ?? []
    switch access {
    // Whoever has a store with a log open has locks on its index. There only writers keep each other out.
    case .writes where !ofLog.isEmpty:
      return ofLog.contains { $0.isExclusive && $0.bytes.overlaps(Self.logWriterByte) }
    case .writes:
      return locks.contains { $0.bytes.overlaps(Self.allBytes) }
    case .reads:
      let isReading = own[store]?.contains { $0.bytes.overlaps(Self.sharedBytes) } ?? false
      return !isReading
        && locks.contains {
          $0.isExclusive && $0.bytes.overlaps(Self.allBytes) && $0.bytes != Self.reservedByte
        }
    }
  }

  /// Whether it is this process or one that it started, such as a keeper.
  private static func isOwn(_ pid: Int32) -> Bool {
    if pid == getpid() { return true }
    guard let status = FileManager.default.contents(atPath: "/proc/\(pid)/stat") else {
      return false
    }
    // "4211 (instar-keeper) S 4200 …"; the name may have spaces and brackets.
    let words = String(decoding: status, as: UTF8.self).split(separator: ")").last?
      .split(separator: " ")
    return words.map { $0.count > 1 && $0[1] == "\(getpid())" } ?? false
  }

  static func identity(of path: String) -> FileIdentity? {
    stat(following: path).map(FileIdentity.init)
  }
}
