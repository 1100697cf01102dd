import Dispatch
import Glibc
public import InstarSchema
import Synchronization

/// Reports changes in folders, without their subfolders (inotify(7)).
///
/// Told are files that were made, written and closed, moved in or out, deleted, or given another owner or mode: half as
/// many events as with every single write. A change made before `add` returned is not told: look into the folder after
/// adding it.
///
/// The reader tells which events it has `taken`. It may fall behind those who change files, and what waits for it must
/// not fill the memory: a change is told once until it is taken, and while `waitingLimit` events wait, the kernel's own
/// queue fills. When that is full too, the kernel drops events, and tells that (`overflow`).
///
/// Invariants: a watch number belongs to at most one folder of `folders`; after `close()` the stream has ended and
/// there is nothing in `folders`; `source` is suspended only while events wait. No lock is held while a file system may
/// not answer.
public final class FolderWatch: Sendable {
  public enum Event: Sendable, Hashable {
    /// A file with this name was created, changed, moved or deleted. Without a name: the owner or mode of the folder
    /// itself changed. `isFolder` says that it was a folder that was there when it changed.
    case changed(folder: String, name: String, isFolder: Bool = false)
    /// The folder itself was deleted, moved or unmounted; it is no longer watched, and neither are folders below it.
    case removed(folder: String)
    /// A folder got another name, or was moved from one watched folder to another. Watch it under its new path.
    case moved(from: String, to: String)
    /// Events were lost: list every folder again.
    case overflow
  }

  /// For one reader, which calls `taken`. Ends with `close()`.
  public let events: AsyncStream<Event>

  private struct State {
    var folders: [Int32: String] = [:]
    /// The first half of a move, until the second half follows or something else does.
    var departed: (cookie: UInt32, folder: String, name: String)?
    var isClosed = false
  }

  /// The events that were told and not taken.
  private struct Backlog {
    var count = 0
    /// The changes among them since the last other event.
    var changes: Set<Event> = []
    /// Whether the kernel's queue is not read.
    var isFull = false
    var isClosed = false
  }

  /// The kernel's queue is not read while so many events wait.
  private static let waitingLimit = 4096

  private static let mask = UInt32(
    IN_ATTRIB | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO
      | IN_DELETE_SELF
      | IN_MOVE_SELF | IN_ONLYDIR)

  private let descriptor: Int32
  private let state = Mutex(State())
  private let backlog = Mutex(Backlog())
  /// Not marked Sendable; only `cancel()` is called on it after `init`, which any thread may.
  nonisolated(unsafe) private let source: any DispatchSourceRead
  private let continuation: AsyncStream<Event>.Continuation

  public init() throws(InstarError) {
    descriptor = inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK))
    guard descriptor >= 0 else {
      throw .systemFailure(
        "cannot watch folders", errno, code: .watchFailed,
        next: "raise the limit: sysctl -w fs.inotify.max_user_instances=1024")
    }
    (events, continuation) = AsyncStream.makeStream(of: Event.self)
    source = DispatchSource.makeReadSource(
      fileDescriptor: descriptor, queue: DispatchQueue(label: "instar.folder-watch"))
    let descriptor = descriptor
    source.setCancelHandler { Glibc.close(descriptor) }
    source.setEventHandler { [weak self] in self?.readEvents() }
    source.resume()
  }

  deinit { close() }

  /// Watches a folder; does nothing if it is watched already.
  ///
  /// - Throws: `watchFailed` if it is not a folder or cannot be read, or at the system's limit of watches.
  public func add(_ folder: String) throws(InstarError) {
    // Not under the lock: a file system that does not answer must not keep others from reading events. `close` may
    // close the descriptor meanwhile, so this call has one of its own.
    let (own, reason) = state.withLock { state -> (Int32, Int32) in
      if state.isClosed { return (-1, EBADF) }
      return (fcntl(descriptor, F_DUPFD_CLOEXEC, 0), errno)
    }
    guard own >= 0 else {
      throw .systemFailure("cannot watch folder '\(folder)'", reason, code: .watchFailed)
    }
    let watch = inotify_add_watch(own, folder, Self.mask)
    let failure = errno
    Glibc.close(own)
    if watch >= 0 {
      // What was told before this is dropped, as a change before `add` returned.
      state.withLock { if !$0.isClosed { $0.folders[watch] = folder } }
      return
    }
    switch failure {
    case ENOSPC:
      throw InstarError(
        .watchFailed, "cannot watch folder '\(folder)'", cause: Self.limitCause,
        next: "raise the limit: sysctl -w fs.inotify.max_user_watches=1048576")
    default:
      throw .systemFailure("cannot watch folder '\(folder)'", failure, code: .watchFailed)
    }
  }

  /// Whether `add` failed because the user has as many watches as the system allows.
  public static func isLimit(_ error: InstarError) -> Bool { error.cause == limitCause }

  private static let limitCause = "the system's limit of inotify watches is reached"

  /// Tells that the reader takes an event. Call it before acting on the event: what changes after that is told again.
  public func taken(_ event: Event) {
    backlog.withLock { backlog in
      backlog.count -= 1
      backlog.changes.remove(event)
      if backlog.count <= Self.waitingLimit / 2 { resumeReading(&backlog) }
    }
  }

  public func close() {
    let wasClosed = state.withLock { state in
      defer {
        state.isClosed = true
        state.folders = [:]
      }
      return state.isClosed
    }
    guard !wasClosed else { return }
    backlog.withLock { backlog in
      backlog.isClosed = true
      // Closes the descriptor, once no handler is running any more. While the source is suspended, that waits.
      source.cancel()
      resumeReading(&backlog)
    }
    continuation.finish()
  }

  private func resumeReading(_ backlog: inout Backlog) {
    guard backlog.isFull else { return }
    backlog.isFull = false
    source.resume()
  }

  /// - Returns: Whether reading stops, until the reader has taken events.
  private func stopReadingIfFull() -> Bool {
    backlog.withLock { backlog in
      guard backlog.count >= Self.waitingLimit, !backlog.isClosed else { return false }
      backlog.isFull = true
      source.suspend()
      return true
    }
  }

  private func readEvents() {
    withUnsafeTemporaryAllocation(byteCount: 1 << 16, alignment: 8) { buffer in
      while true {
        if stopReadingIfFull() { return deliverDeparted() }
        let count = state.withLock { state in
          state.isClosed ? 0 : read(descriptor, buffer.baseAddress, buffer.count)
        }
        guard count > 0 else { return deliverDeparted() }
        deliver(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      }
    }
  }

  private func deliver(_ records: UnsafeRawBufferPointer) {
    let headerBytes = MemoryLayout<inotify_event>.size
    var position = 0
    while position + headerBytes <= records.count {
      // wd, mask, cookie, len: four words, then `len` bytes of name, padded with NUL.
      let watch = records.loadUnaligned(fromByteOffset: position, as: Int32.self)
      let mask = records.loadUnaligned(fromByteOffset: position + 4, as: UInt32.self)
      let cookie = records.loadUnaligned(fromByteOffset: position + 8, as: UInt32.self)
      let nameBytes = Int(records.loadUnaligned(fromByteOffset: position + 12, as: UInt32.self))
      let end = position + headerBytes + nameBytes
      guard end <= records.count else { return }
      let name = records[position + headerBytes..<end].prefix { $0 != 0 }
      position = end
      let text = String(decoding: name, as: UTF8.self)
      if mask & UInt32(IN_ISDIR) != 0, mask & UInt32(IN_MOVED_FROM | IN_MOVED_TO) != 0 {
        deliverMove(watch: watch, mask: mask, cookie: cookie, name: text)
      } else {
        deliverDeparted()
        if let event = event(watch: watch, mask: mask, name: text) { tell(event) }
      }
    }
  }

  private func tell(_ event: Event) {
    let isNew = backlog.withLock { backlog in
      if case .changed = event {
        guard backlog.changes.insert(event).inserted else { return false }
      } else {
        // A change after this must be told after it: the folder may be another one by then.
        backlog.changes = []
      }
      backlog.count += 1
      return true
    }
    if isNew { continuation.yield(event) }
  }

  /// The two halves of a move have the same cookie, and follow each other.
  private func deliverMove(watch: Int32, mask: UInt32, cookie: UInt32, name: String) {
    let events = state.withLock { state -> [Event] in
      defer { state.departed = nil }
      let departed = state.departed
      guard let folder = state.folders[watch] else { return departed.map(Self.changed) ?? [] }
      if mask & UInt32(IN_MOVED_FROM) != 0 { return departed.map(Self.changed) ?? [] }
      guard let departed, departed.cookie == cookie else {
        let arrived = Event.changed(folder: folder, name: name, isFolder: true)
        return (departed.map(Self.changed) ?? []) + [arrived]
      }
      return [
        .moved(
          from: Self.path(departed.folder, departed.name), to: Self.path(folder, name))
      ]
    }
    events.forEach(tell)
    guard mask & UInt32(IN_MOVED_FROM) != 0 else { return }
    state.withLock { state in
      state.departed = state.folders[watch].map { (cookie, $0, name) }
    }
  }

  /// A folder was moved to where nothing is watched.
  private func deliverDeparted() {
    let departed = state.withLock { state in
      defer { state.departed = nil }
      return state.departed
    }
    if let departed { Self.changed(departed).forEach(tell) }
  }

  private static func changed(
    _ departed: (cookie: UInt32, folder: String, name: String)
  ) -> [Event] {
    [.changed(folder: departed.folder, name: departed.name)]
  }

  private static func path(_ folder: String, _ name: String) -> String {
    folder == "/" ? "/\(name)" : "\(folder)/\(name)"
  }

  private func event(watch: Int32, mask: UInt32, name: String) -> Event? {
    if mask & UInt32(IN_Q_OVERFLOW) != 0 { return .overflow }
    return state.withLock { state in
      guard let folder = state.folders[watch] else { return nil }
      if mask & UInt32(IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED) != 0 {
        state.folders[watch] = nil
        // After a move the watches would go on under the new path, which may be one that nobody watches.
        if mask & UInt32(IN_MOVE_SELF) != 0 {
          inotify_rm_watch(descriptor, watch)
          for (below, path) in state.folders where path.isBelow(folder) {
            inotify_rm_watch(descriptor, below)
            state.folders[below] = nil
          }
        }
        return .removed(folder: folder)
      }
      let isFolder =
        !name.isEmpty && mask & UInt32(IN_ISDIR) != 0 && mask & UInt32(IN_DELETE) == 0
      return .changed(folder: folder, name: name, isFolder: isFolder)
    }
  }
}
