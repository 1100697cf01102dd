import Dispatch
import InstarConfiguration
import InstarLinux
import InstarSchema

/// The folders of the watches: follows their changes, scans them, and says what that means for stores.
///
/// One value serves one configuration; a reload makes another one. A new set of kernel watches is simpler than finding
/// out which are no longer needed; the scans find what happens in between.
///
/// Invariants:
/// - A folder is watched before it is listed: a store that is made in between is found twice rather than never.
/// - Nothing is opened but folders: names and `lstat` are enough.
/// - Of each watch at most one whole scan is out.
/// - A problem is reported again only when it changes.
struct WatchedFolders {
  /// A scan of a watch, or of one folder in it, that came to its end.
  struct Scan: Sendable {
    var watch: Configuration.Watch
    var folder: String
    var result: Result<Scanner.Findings, InstarError>
    /// Counts configurations: a scan that began under an earlier one is ignored.
    var generation: Int
    /// How long it took.
    var duration: Duration

    var isWhole: Bool { folder == watch.folder }
  }

  /// Folders are listed here, one after the other, because that blocks.
  private static let scanQueue = DispatchQueue(label: "instard.scan")

  let kernelWatch: FolderWatch
  let generation: Int
  private let configuration: Configuration
  private let log: EventLog
  private let mailbox: DaemonMessage.Mailbox
  /// Brings the kernel's notifications into the mailbox.
  private let pump: Task<Void, Never>

  /// Paths of watches whose whole scan is out; `true` where another one is wanted after it.
  private var scansOut: [String: Bool] = [:]
  /// Paths of watches that have not been read yet.
  private var unread: Set<String>
  private var problems: [String: Set<InstarError>] = [:]
  /// Paths of watches that could not be read the last time, and why.
  private(set) var unreadable: [String: InstarError] = [:]

  /// - Throws: `watchFailed` when the kernel gives no more inotify instances.
  init(
    _ configuration: Configuration, generation: Int, log: EventLog, mailbox: DaemonMessage.Mailbox
  ) throws(InstarError) {
    self.configuration = configuration
    self.generation = generation
    self.log = log
    self.mailbox = mailbox
    unread = Set(configuration.watches.map(\.path))
    let kernelWatch = try FolderWatch()
    self.kernelWatch = kernelWatch
    pump = Task {
      for await event in kernelWatch.events { mailbox.yield(.folderEvent(event)) }
    }
  }

  func close() {
    pump.cancel()
    kernelWatch.close()
  }

  /// Each folder was read, or could not be.
  var areRead: Bool { unread.isEmpty }

  mutating func scanAll() {
    for watch in configuration.watches { scan(watch) }
  }

  private mutating func scan(_ watch: Configuration.Watch) {
    guard scansOut[watch.path] == nil else {
      scansOut[watch.path] = true
      return
    }
    scansOut[watch.path] = false
    scan(watch, from: watch.folder)
  }

  private func scan(_ watch: Configuration.Watch, from folder: String) {
    Self.scanQueue.async { [kernelWatch, generation, mailbox] in
      let began = ContinuousClock.now
      let result: Result<Scanner.Findings, InstarError>
      do throws(InstarError) {
        result = .success(
          try Scanner(watch: watch).scan(from: folder) { folder in
            do throws(InstarError) {
              try kernelWatch.add(folder)
              return nil
            } catch {
              return error
            }
          })
      } catch {
        result = .failure(error)
      }
      mailbox.yield(
        .scanned(
          Scan(
            watch: watch, folder: folder, result: result, generation: generation,
            duration: .now - began)))
    }
  }

  /// Takes in what a scan has found.
  ///
  /// - Parameter known: the stores that the queue knows.
  mutating func finish(_ scan: Scan, known: [String]) -> [StoreQueue.Event] {
    guard scan.generation == generation else { return [] }
    let watch = scan.watch
    var events: [StoreQueue.Event] = []
    var found: Set<String> = []
    switch scan.result {
    case .success(let findings):
      for store in findings.stores {
        found.insert(store.path)
        events.append(.versionRead(store.path, store.version))
      }
      report(Set(findings.problems), of: watch, isWhole: scan.isWhole)
      if scan.isWhole, unread.contains(watch.path) || unreadable[watch.path] != nil {
        unreadable[watch.path] = nil
        log.post(.watchStarted(folder: watch.path, stores: findings.stores.count))
      }
    case .failure(let error):
      // A folder further down may have been deleted: its stores are checked below.
      if scan.isWhole {
        unreadable[watch.path] = error
        report([error], of: watch, isWhole: true)
      }
    }
    // A store that is not listed any more may have come back meanwhile.
    for store in known where !found.contains(store) && watch.covers(store, in: scan.folder) {
      events.append(.touched(store))
    }
    if scan.isWhole {
      unread.remove(watch.path)
      if scansOut.removeValue(forKey: watch.path) == true { self.scan(watch) }
    }
    return events
  }

  /// Takes in a notification of the kernel.
  mutating func handle(_ event: FolderWatch.Event) -> [StoreQueue.Event] {
    switch event {
    case .changed(let folder, let name):
      let prefix = folder == "/" ? "/" : folder + "/"
      if name.isEmpty {
        // The folder's own owner or mode; of a folder further down its parent tells too.
        for watch in configuration.watches where folder == watch.folder { scan(watch) }
        return []
      }
      let entering =
        StoreName.isPrivateFolder(name)
        ? []
        : configuration.watches.filter { $0.folder != prefix + name && $0.enters(prefix + name) }
      if !entering.isEmpty, Scanner.isFolder(prefix + name) {
        for watch in entering { scan(watch, from: prefix + name) }
      } else if let watch = configuration.watch(of: folder),
        let store = StoreName.store(of: name, patterns: watch.patterns)
      {
        if store == name, let problem = Scanner.kindProblem(of: prefix + name) {
          report([problem], of: watch, isWhole: false)
        }
        return [.touched(prefix + store)]
      }
    case .removed(let folder):
      for watch in configuration.watches where watch.enters(folder) { scan(watch) }
    case .overflow:
      break
    }
    return []
  }

  private mutating func report(
    _ found: Set<InstarError>, of watch: Configuration.Watch, isWhole: Bool
  ) {
    let known = problems[watch.path] ?? []
    for problem in found.subtracting(known).sorted(by: { $0.what < $1.what }) {
      log.post(.watchFailed(problem))
    }
    problems[watch.path] = isWhole ? found : known.union(found)
  }
}
