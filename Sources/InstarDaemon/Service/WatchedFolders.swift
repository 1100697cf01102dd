import Foundation
import InstarConfiguration
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire

/// The folders of the watches: follows their changes, scans them, and makes events about stores of both.
///
/// One value serves one configuration; a reload creates another one. A new set of kernel watches is simpler than
/// finding the watches that are no longer needed. The scans find the changes in between.
///
/// Invariants:
/// - A folder is watched before it is listed: a store that is created in between is found twice rather than never.
/// - Only folders are opened: names and `lstat` are enough.
/// - Each watch has at most one whole scan in progress.
/// - A folder that the kernel cannot watch is `polled`: read every `pollInterval`.
/// - A file system that does not answer stops neither the loop nor another watch: only scans wait for such a file
///   system. If a question about a store gets no answer, the loop asks nothing else about the store's watch until a
///   scan has read the watch.
/// - A problem is reported again only when it changes. Of each watch, some hundred are remembered, and no others are
///   reported.
struct WatchedFolders {
  /// The result of a scan of a watch, or of folders in it.
  struct Scan: Sendable {
    var watch: Configuration.Watch
    /// Where it began.
    var folders: [String]
    var findings: Scanner.Findings
    /// Those of `folders` that could not be read, and why.
    var failures: [String: InstarError]
    /// The folders that were entered, and those of them that the kernel cannot watch.
    var entered: Set<String>
    var unwatched: Set<String>
    /// Counts configurations: a scan that began under an earlier one is ignored.
    var generation: Int
    /// The folder of the watch as in a `StorePath`, and what was mounted around it when the scan began. Of whole scans
    /// only.
    var realFolder = ""
    var mounts: [MountWatch.Mount] = []
    /// What was unanswered when the scan began; there was an answer about it.
    var answered: String?
    /// How long it took.
    var duration: Duration
    /// Of this process.
    var processorTime = Duration.zero

    var isWhole: Bool { folders == [watch.folder] }
  }

  /// How long the daemon waits for a step of a scan before it goes on without the watch.
  static let patience = Duration.seconds(60)

  private static let scanQueue = WatchQueue(patience: .seconds(10))
  private static let pollInterval = Duration.seconds(5)
  /// Polling takes at most a hundredth of the time of one processor.
  private static let pollShare = 100

  let kernelWatch: FolderWatch
  let generation: Int
  private let configuration: Configuration
  private let log: EventLog
  private let mailbox: DaemonMessage.Mailbox
  private let reader: FileReader
  /// Moves the kernel's notifications into the mailbox.
  private let pump: Task<Void, Never>

  /// By the path of the watch.
  private var states: [String: WatchState] = [:]
  /// When the polled folders are read next; `nil` without any, and while they are read.
  private(set) var pollDue: ContinuousClock.Instant?
  private var pollTime = Duration.zero
  private let mountWatch: MountWatch?

  /// - Parameter previous: The folders under the configuration before. Its scans that are late delay those of the same
  ///   watches here.
  /// - Throws: `watchFailed` when the kernel gives no more inotify instances.
  init(
    _ configuration: Configuration, generation: Int, after previous: WatchedFolders? = nil,
    log: EventLog, mailbox: DaemonMessage.Mailbox, reader: FileReader
  ) throws(InstarError) {
    self.configuration = configuration
    self.generation = generation
    self.log = log
    self.mailbox = mailbox
    self.reader = reader
    for watch in configuration.watches {
      states[watch.path] = WatchState(after: previous?.states[watch.path])
    }
    let kernelWatch = try FolderWatch()
    self.kernelWatch = kernelWatch
    pump = Task {
      for await event in kernelWatch.events { mailbox.yield(.folderEvent(event, kernelWatch)) }
    }
    mountWatch = MountWatch { mailbox.yield(.mountsChanged) }
    // Each question to a file system that did not answer before would block another thread.
    let asked = configuration.watches.filter { [states] in
      states[$0.path]?.isSilent == false && states[$0.path]?.unanswered == nil
    }
    let found = answersInTime(about: asked.map(\.folder), StorePath.folder)
    let named = answersInTime(
      about: asked.map(\.folder).filter { found[$0] == nil }, Self.target(ofLinkOn:))
    let mounted = MountWatch.mounts()
    for watch in configuration.watches {
      let realFolder =
        found[watch.folder] ?? previous?.states[watch.path]?.realFolder ?? named[watch.folder]
      states[watch.path]?.realFolder = realFolder
      states[watch.path]?.mounts = mounted.around(realFolder ?? watch.folder)
    }
  }

  /// A folder with the target of the first symbolic link on its path; `nil` without one. Asks nothing about the target,
  /// whose file system may not answer.
  private static func target(ofLinkOn folder: String) -> String? {
    var path = ""
    var rest = folder.split(separator: "/")[...]
    while let name = rest.popFirst() {
      let parent = path
      path += "/\(name)"
      // Most folders are not symbolic links.
      guard let target = try? FileManager.default.destinationOfSymbolicLink(atPath: path) else {
        continue
      }
      let start = target.hasPrefix("/") ? target : "\(parent)/\(target)"
      let whole = ([start] + rest.map(String.init)).joined(separator: "/")
      return URL(filePath: whole, directoryHint: .notDirectory).standardized.path
    }
    return nil
  }

  func close() {
    pump.cancel()
    kernelWatch.close()
    mountWatch?.close()
  }

  /// Whether each folder was read, or could not be read.
  var areRead: Bool { states.values.allSatisfy { !$0.isUnread } }

  /// The same, without the folders whose file systems do not answer.
  var areReadOrSilent: Bool { states.values.allSatisfy { !$0.isUnread || $0.isSilent } }

  /// The paths of watches that were reported because their file systems do not answer scans.
  var silent: Set<String> { Set(states.lazy.filter { $0.value.isSilent }.map(\.key)) }

  /// Why watches are unreadable, by path.
  var unreadable: [String: InstarError] { states.compactMapValues(\.unreadable) }

  /// The folders of the watches as in a `StorePath`, by the path of the watch, as far as they are known.
  var realFolders: [String: String] { states.compactMapValues(\.realFolder) }

  /// When a whole scan will have taken no step for too long; `nil` where none is waited for. A scan that waits for its
  /// turn is not late.
  var silenceDue: ContinuousClock.Instant? {
    states.values.lazy.filter { $0.isBeingScanned && !$0.isSilent }.compactMap(\.activity.lastStep)
      .min().map { $0 + Self.patience }
  }

  /// Stops waiting for the watches whose file systems do not answer. Their scans go on, and the watches are used when
  /// these end.
  ///
  /// - Returns: The paths of these watches.
  mutating func leaveSilentWatches(at now: ContinuousClock.Instant) -> [String] {
    var left: [String] = []
    for watch in configuration.watches {
      guard let state = states[watch.path], state.isBeingScanned, !state.isSilent,
        let step = state.activity.lastStep, step + Self.patience <= now
      else { continue }
      states[watch.path]?.isSilent = true
      left.append(watch.path)
      let error = InstarError(
        .watchFailed, "cannot read the folder '\(watch.path)' yet",
        cause: "its file system has not answered for \(DurationText.format(Self.patience))",
        state:
          "not read; rollouts wait for its stores, and instard reads it as soon as its file "
          + "system answers",
        next: "to see whether a mount is the cause, run: cat /proc/self/mounts; to go on without "
          + "the folder, remove its watch from the configuration, then run: systemctl reload "
          + "instard")
      states[watch.path]?.unreadable = error
      report([error], of: watch, isWhole: true)
    }
    return left
  }

  /// Reads the versions of the files of stores.
  ///
  /// - Returns: The answers by store, where `nil` stands for no regular file. A store about which there is no answer is
  ///   not among them: a scan finds it as soon as there is one.
  mutating func versions(of stores: [String]) -> [String: WatchedVersion?] {
    var versions: [String: WatchedVersion?] = [:]
    var late: Set<String> = []
    var rest: [(store: String, watch: Configuration.Watch)] = []
    for store in stores {
      if let watch = configuration.watch(ofStore: store) {
        rest.append((store, watch))
      } else {
        versions.updateValue(nil, forKey: store)
      }
    }
    while true {
      late.formUnion(rest.map(\.watch.path).filter { states[$0]?.unanswered != nil })
      rest.removeAll { late.contains($0.watch.path) }
      guard !rest.isEmpty else { break }
      let answers = reader.answers(about: rest.map(\.store)) { store in
        let version = WatchedVersion(path: store)
        return (version, problem: version == nil ? Scanner.kindProblem(of: store) : nil)
      }
      for ((store, watch), (version, problem)) in zip(rest, answers) {
        versions.updateValue(version, forKey: store)
        if let problem { report([problem], of: watch, isWhole: false) }
      }
      guard answers.count < rest.count else { break }
      late.formUnion(findUnanswered(after: rest[answers.count].store, rest[answers.count].watch))
      rest.removeFirst(answers.count)
    }
    scan(late)
    return versions
  }

  /// Notes that there is no answer about a store.
  mutating func noteSilence(of store: String) {
    guard let watch = configuration.watch(ofStore: store) else { return }
    // A scan in progress may have found the store as it was before.
    if states[watch.path]?.unanswered != nil { return scan(watch) }
    scan(findUnanswered(after: store, watch))
  }

  /// Finds the watches that have the file system of a store: asking about a store of each would take a second for each.
  ///
  /// - Returns: The paths of the watches about which no question is asked from now on.
  private mutating func findUnanswered(
    after store: String, _ watch: Configuration.Watch
  ) -> Set<String> {
    states[watch.path]?.unanswered = store
    var found: Set = [watch.path]
    let others = configuration.watches.filter { states[$0.path]?.unanswered == nil }
    let answers = answersInTime(about: others.map(\.folder), StorePath.folder)
    for other in others where answers[other.folder] == nil {
      states[other.path]?.unanswered = other.folder
      found.insert(other.path)
    }
    return found
  }

  private mutating func scan(_ watches: Set<String>) {
    for watch in configuration.watches where watches.contains(watch.path) { scan(watch) }
  }

  mutating func scanAll() {
    for watch in configuration.watches { scan(watch) }
  }

  private mutating func scan(_ watch: Configuration.Watch) {
    guard states[watch.path]?.isBeingScanned == false else {
      states[watch.path]?.mustBeScannedAgain = true
      return
    }
    states[watch.path]?.isBeingScanned = true
    scan(watch, from: [watch.folder])
  }

  private mutating func scanPart(_ watch: Configuration.Watch, _ folders: [String]) {
    // A scan that begins at the watch's own folder is a whole one, and ends as one.
    if folders.contains(watch.folder) { return scan(watch) }
    if states[watch.path]?.nextParts != nil {
      states[watch.path]?.nextParts?.formUnion(folders)
    } else {
      states[watch.path]?.nextParts = []
      scan(watch, from: folders)
    }
  }

  private func scan(_ watch: Configuration.Watch, from folders: [String]) {
    let activity = states[watch.path]?.activity
    let unanswered = states[watch.path]?.unanswered
    Self.scanQueue.add(watch.path) { [kernelWatch, generation, mailbox] _ in
      let began = ContinuousClock.now
      let processorBefore = Duration.ofThread
      var scan = Scan(
        watch: watch, folders: folders, findings: Scanner.Findings(), failures: [:], entered: [],
        unwatched: [], generation: generation, duration: .zero)
      activity?.noteStep()
      if scan.isWhole {
        if let unanswered { _ = WatchedVersion(path: unanswered) }
        scan.answered = unanswered
        scan.realFolder = StorePath.folder(watch.folder)
        scan.mounts = MountWatch.mounts().around(scan.realFolder)
      }
      for folder in folders {
        do throws(InstarError) {
          let findings = try Scanner(watch: watch).scan(
            from: folder, onEntry: { activity?.noteStep() },
            willEnter: { folder in
              scan.entered.insert(folder)
              do throws(InstarError) {
                try kernelWatch.add(folder)
                return nil
              } catch {
                guard FolderWatch.isLimit(error) else { return error }
                scan.unwatched.insert(folder)
                return nil
              }
            })
          scan.findings.add(findings)
        } catch {
          scan.failures[folder] = error
        }
      }
      scan.duration = .now - began
      scan.processorTime = .ofThread - processorBefore
      activity?.noteEnd()
      mailbox.yield(.scanned(scan))
    }
  }

  // MARK: Folders that the kernel cannot watch

  /// Reads these folders once more.
  mutating func poll() {
    pollDue = nil
    pollTime = .zero
    for watch in configuration.watches {
      // A scan reads the folders below too. One scan for all: each compares the stores that are known with its own.
      let folders = states[watch.path]?.polled.topFolders ?? []
      if !folders.isEmpty { scanPart(watch, folders) }
    }
  }

  private mutating func notePolled(_ scan: Scan) {
    let watch = scan.watch.path
    // A rescan reads more than the polled folders, unless the watch's own folder is one of them.
    let wasPolled = states[watch].map {
      scan.isWhole ? $0.polled.contains(scan.watch.folder) : !$0.polled.isEmpty
    }
    if wasPolled == true { pollTime += scan.duration }
    if scan.isWhole {
      states[watch]?.known = scan.entered
      states[watch]?.polled = scan.unwatched
    } else {
      states[watch]?.known.formUnion(scan.entered)
      states[watch]?.polled.subtract(scan.entered)
      states[watch]?.polled.formUnion(scan.unwatched)
      states[watch]?.polled.subtract(scan.failures.keys)
    }
    guard states.values.contains(where: { !$0.polled.isEmpty }) else {
      pollDue = nil
      return
    }
    pollDue = .now + max(Self.pollInterval, pollTime * Self.pollShare)
  }

  private static func limitProblem(of watch: Configuration.Watch) -> InstarError {
    InstarError(
      .watchFailed, "cannot watch all folders in '\(watch.path)'",
      cause: "the system's limit of inotify watches is reached",
      state:
        "instard reads the others every \(DurationText.format(pollInterval)), or less often if there are many",
      next: "run: sysctl -w fs.inotify.max_user_watches=1048576 && instarctl rescan")
  }

  // MARK: Mounts

  /// Scans the watches above or below which something was mounted or unmounted.
  mutating func followMounts() {
    let mounted = MountWatch.mounts()
    for watch in configuration.watches {
      let now = mounted.around(states[watch.path]?.realFolder ?? watch.folder)
      guard states[watch.path]?.mounts != now else { continue }
      states[watch.path]?.mounts = now
      scan(watch)
    }
  }

  // MARK: What happened

  /// Applies the result of a scan.
  ///
  /// - Parameter stores: Returns the stores that the queue knows in those of their folders that are wanted.
  mutating func finish(
    _ scan: Scan, stores: (_ isWanted: (String) -> Bool) -> [String]
  ) -> [StoreQueue.Event] {
    guard scan.generation == generation else { return [] }
    let watch = scan.watch
    var events: [StoreQueue.Event] = []
    var found: Set<String> = []
    // Below a folder that is read for the first time, no store is known.
    let mayMiss =
      scan.isWhole || states[watch.path]?.known.isDisjoint(with: scan.entered) == false
      || scan.entered.isEmpty
    notePolled(scan)
    if scan.isWhole, let error = scan.failures[watch.folder] {
      states[watch.path]?.unreadable = error
      report([error], of: watch, isWhole: true)
    } else if scan.failures.count < scan.folders.count {
      let findings = scan.findings
      if mayMiss { found = Set(findings.stores.map(\.path)) }
      events.append(.found(findings.stores))
      var problems = Set(findings.problems)
      if states[watch.path]?.polled.isEmpty == false {
        problems.insert(Self.limitProblem(of: watch))
      }
      if findings.hasMoreProblems { problems.insert(Self.moreProblems(in: watch)) }
      report(problems, of: watch, isWhole: scan.isWhole)
      if scan.isWhole, let state = states[watch.path], state.isUnread || state.unreadable != nil {
        states[watch.path]?.unreadable = nil
        log.post(.watchStarted(folder: watch.path, stores: findings.stores.count))
      }
    }
    // A store that the scan did not list may exist again by now, also in a folder that is gone.
    if mayMiss {
      let began = Set(scan.folders)
      let known = stores { $0.isIn(began) && watch.holdsStores(in: $0) }
      for store in known where !found.contains(store) && watch.hasName(ofStore: store) {
        events.append(.touched(store))
      }
    }
    if scan.isWhole {
      let mustBeScannedAgain = states[watch.path]?.mustBeScannedAgain == true
      states[watch.path]?.end(scan)
      if mustBeScannedAgain { self.scan(watch) }
    } else if let next = states[watch.path]?.nextParts {
      states[watch.path]?.nextParts = nil
      if !next.isEmpty { scanPart(watch, next.topFolders) }
    }
    return events
  }

  /// Handles a notification of the kernel.
  mutating func handle(_ event: FolderWatch.Event) -> [StoreQueue.Event] {
    switch event {
    case .changed(let folder, let name, let isFolder):
      let prefix = folder == "/" ? "/" : folder + "/"
      if name.isEmpty {
        // The owner or mode of the watch's own folder changed. For a folder below, its parent has an event too.
        for watch in configuration.watches where folder == watch.folder { scan(watch) }
        return []
      }
      guard isFolder else {
        let store = prefix + StoreName.store(of: name)
        return configuration.watch(ofStore: store) == nil ? [] : [.touched(store)]
      }
      let path = prefix + name
      guard !StoreName.isPrivateFolder(name) else { return [] }
      for watch in configuration.watches where watch.folder != path && watch.enters(path) {
        scanPart(watch, [path])
      }
    case .moved(let old, let new):
      let isPrivate = StoreName.isPrivateFolder(new.lastName)
      for watch in configuration.watches where !isPrivate && watch.enters(new) {
        scan(watch, from: [new])
      }
      return [.folderMoved(from: old, to: new)]
    case .removed(let folder):
      for watch in configuration.watches where watch.enters(folder) {
        if folder == watch.folder { scan(watch) } else { scan(watch, from: [folder]) }
      }
    case .overflow:
      break
    }
    return []
  }

  private mutating func report(
    _ found: Set<InstarError>, of watch: Configuration.Watch, isWhole: Bool
  ) {
    let known = states[watch.path]?.problems ?? []
    var kept = isWhole ? known.intersection(found) : known
    for problem in found.subtracting(known).sorted(by: { $0.what < $1.what }) {
      let problem = kept.count < Self.problemLimit ? problem : Self.moreProblems(in: watch)
      if kept.insert(problem).inserted { log.post(.watchFailed(problem)) }
    }
    states[watch.path]?.problems = kept
  }

  /// The problems that one scan reports at most, and two about the whole watch.
  private static let problemLimit = Scanner.problemLimit + 2

  private static func moreProblems(in watch: Configuration.Watch) -> InstarError {
    InstarError(
      .unsafePath, "cannot report all unusable files and folders in '\(watch.path)'",
      cause: "there are more than \(Scanner.problemLimit) of them",
      state: "not opened",
      next: "correct those that instard has reported, or move them away; then run: instarctl rescan"
    )
  }
}

extension [MountWatch.Mount] {
  /// The mounts above and below a folder, whose path has no symbolic links.
  fileprivate func around(_ folder: String) -> [MountWatch.Mount] {
    filter { folder == $0.path || folder.isBelow($0.path) || $0.path.isBelow(folder) }
  }
}

extension Set<String> {
  /// The folders of the set that are not below another folder of the set.
  fileprivate var topFolders: [String] {
    var top: [String] = []
    for folder in sorted() where top.last.map(folder.isBelow) != true { top.append(folder) }
    return top
  }
}

extension String {
  /// Whether a folder is one of these, or somewhere below one.
  func isIn(_ folders: Set<String>) -> Bool {
    var folder = self
    while !folders.contains(folder) {
      let parent = folder.parentFolder
      guard parent != folder else { return false }
      folder = parent
    }
    return true
  }
}

extension Duration {
  /// The processor time of this thread.
  fileprivate static var ofThread: Duration {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }
}
