import Foundation
public import InstarLinux
public import InstarSchema
public import InstarWire
import Synchronization

/// The state folder: the phase journal, from which runs are recovered after a crash, and the ledger of all runs.
///
/// ```text
/// phases/RUN.json       the phases of an open run, one a line: made and locked by its supervisor when the run begins,
///                       empty until the first phase. Once the run is in the ledger it is removed, or emptied and
///                       renamed for the next run of its supervisor
/// ledger/ledger.jsonl   one RunReport a line, oldest first; older files: see `StateFolder+Ledger`
/// ledger/copies.jsonl   the copies of backups in other folders, see `StateFolder+BackupCopies`
/// ledger/removed.jsonl  the backups that were removed on purpose, see `StateFolder+BackupRemovals`
/// holds/*.json          one Hold each, see `StateFolder+Holds`
/// quarantine/*.json     one QuarantineRecord each, see `StateFolder+Quarantine`
/// ```
///
/// Invariants:
/// - a file in `phases` that can be locked belongs to a run whose supervisor has ended; `RunJournal` has the order of
///   the writes of one run;
/// - the last line that ends in a newline is the phase of the run. A crash cut off a line without one, and the run did
///   not enter that phase;
/// - a file whose last phase is of another run has none of its own. The file was renamed for another run, and a loss of
///   power kept only the new name or only the new content: the run that it describes is in the ledger, or has not
///   entered the phase;
/// - every file belongs to the folder's owner, even if root wrote it: the daemon that owns the folder must be able to
///   replace it.
///
/// Several processes may use one state folder at the same time.
public final class StateFolder: Sendable {
  public let path: String
  /// The folders that a command uses without --state-dir: root, and this user.
  private let defaults: Set<String>
  /// The owner of new files; `nil` for this process's user.
  let owner: DurableFile.Owner?
  /// The holds that were read, by the names of their files.
  let knownHolds = Mutex<[String: Hold]>([:])
  /// The runs that this process supervises.
  let ownRuns = Mutex<Set<String>>([])
  /// Empty files of runs that have ended, locked for the next runs, each with the run that it is named after. There are
  /// none while `ownRuns` is empty.
  private let unusedFiles = Mutex<[(run: String, lock: FolderLock)]>([])
  /// The runs that this process supervised and that stayed open when they ended, each with its store.
  let runsLeftOpen = Mutex<[String: String]>([:])
  /// Shares syncs, because runs at once write their phases and reports at about the same time.
  private let phaseSyncs = GroupCommit<Void>()
  let ledgerLines = GroupCommit<Data>()
  /// Asks about the files of stores: their file systems may not answer.
  let reader = FileReader(patience: .seconds(30))
  /// When the file of the ledger that is appended to is full.
  let ledgerSize = Mutex(LedgerRetention().fileBytes)

  private static let folders = ["phases", "ledger", "holds", "quarantine"]
  private var phases: String { path + "/phases" }
  var ledger: String { path + "/ledger" }

  /// The folders of the commands of root and of this user, where no configuration has moved the service's.
  public static var defaultFolders: Set<String> {
    [Installation.serviceStateFolder, Installation.defaultStateFolder]
  }

  /// Opens the folder, and creates it with mode 0700 if it is missing.
  ///
  /// - Parameter defaults: The folders that a command needs not name in --state-dir.
  /// - Throws: `stateFolderFailed` if it cannot be created or written, or if everybody can write it.
  public init(
    path: String, defaults: Set<String> = StateFolder.defaultFolders
  ) throws(InstarError) {
    self.path = path
    self.defaults = defaults
    try Self.make(path)
    guard let status = stat(following: path), status.st_mode & S_IWOTH == 0 else {
      throw InstarError(
        .stateFolderFailed, "cannot use the state folder '\(path)'",
        cause: "everybody can write the folder",
        next: "run: chmod o-w \(CommandText.quoted(path))")
    }
    // In a folder that this user cannot enter, every file would look missing.
    try Self.require(X_OK, in: [path], of: path)
    owner =
      geteuid() == 0 && status.st_uid != 0
      ? DurableFile.Owner(uid: status.st_uid, gid: status.st_gid) : nil
    for name in Self.folders {
      let folder = path + "/" + name
      if access(folder, F_OK) != 0 { try Self.make(folder, of: owner) }
      if let owner {
        Self.give(name, in: path, to: owner)
        // Root would work in another folder, by the owner's choice.
        _ = try OwnedFile(of: folder + "/.", owner: owner)
      }
    }
    try Self.require(W_OK | X_OK, in: Self.folders.map { path + "/" + $0 }, of: path)
  }

  /// Makes the owner own a folder that root made, and the empty files in it: root may have been killed right after it
  /// made them. Errors are ignored here, because the next use of the file reports them.
  ///
  /// Files with content keep their owner: the state folder's owner may have moved another file of root's here, to read
  /// it.
  private static func give(_ name: String, in path: String, to owner: DurableFile.Owner) {
    var status = stat()
    // The owner may replace the state folder by a symbolic link to a folder of root's. So it is opened once, and used
    // by its descriptor.
    let parent = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard parent >= 0 else { return }
    defer { Foundation.close(parent) }
    guard fstat(parent, &status) == 0, status.st_uid == owner.uid else { return }
    let descriptor = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    defer { Foundation.close(descriptor) }
    if fstat(descriptor, &status) == 0, status.st_uid == 0 {
      fchown(descriptor, owner.uid, owner.gid)
    }
    guard let names = try? FolderNames.all(in: path + "/" + name) else { return }
    for entry in names {
      let file = openat(descriptor, entry, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
      guard file >= 0 else { continue }
      defer { Foundation.close(file) }
      if fstat(file, &status) == 0, status.isRegular, status.st_uid == 0,
        status.st_size == 0, status.st_nlink == 1
      {
        fchown(file, owner.uid, owner.gid)
      }
    }
  }

  /// The next step for a file that cannot be read.
  func adviceOnReading(_ file: String, else other: String) -> String {
    var (own, folder) = (stat(), stat())
    guard lstat(file, &own) == 0, stat(path, &folder) == 0, own.st_uid != folder.st_uid,
      folder.st_uid == geteuid()
    else { return other }
    return "as root, run: chown \(folder.st_uid):\(folder.st_gid) \(CommandText.quoted(file))"
  }

  /// Whether a file has no content: its process was killed right after it made the file.
  static func isEmpty(_ file: String) -> Bool {
    stat(of: file).map { $0.isRegular && $0.st_size == 0 } ?? false
  }

  /// Opens the folder to read its ledger. Creates and checks nothing; the folder may be missing.
  public init(reading path: String, defaults: Set<String> = StateFolder.defaultFolders) {
    self.path = path
    self.defaults = defaults
    owner = nil
  }

  private static func require(
    _ rights: Int32, in folders: [String], of path: String
  ) throws(InstarError) {
    for folder in folders where access(folder, rights) != 0 {
      let reason = String(cString: strerror(errno))
      throw InstarError(
        .stateFolderFailed, "cannot use the state folder '\(path)'",
        cause: "this user cannot write in '\(folder)': \(reason)", next: asOwner(of: path))
    }
  }

  /// The next step for a user without permission to use the folder. A hold in another folder would have no effect here.
  static func asOwner(of path: String) -> String {
    var status = stat()
    let owner =
      stat(path, &status) == 0 && status.st_uid != 0
      ? " or as user \(ProcessIdentity.label(of: status.st_uid))" : ""
    return "run the command again as root\(owner)"
  }

  /// The option that a command needs to use this folder; empty where it is the default of whoever runs the command:
  /// root for the folder of the service, else this user.
  var option: String {
    defaults.contains(path) ? "" : " --state-dir \(CommandText.quoted(path))"
  }

  /// The error for a path of something else than a folder; `nil` for a folder, and where nothing is.
  static func failureIfNotAFolder(_ path: String) -> InstarError? {
    guard let status = stat(following: path), !status.isFolder else { return nil }
    return InstarError(
      .stateFolderFailed, "cannot use the state folder '\(path)'",
      cause: "'\(path)' is not a folder", next: "choose another folder with --state-dir")
  }

  private static func make(_ folder: String) throws(InstarError) {
    if let error = failureIfNotAFolder(folder) { throw error }
    do {
      try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      throw cannotMake(
        folder, isFull: (error as? CocoaError)?.code == .fileWriteOutOfSpace,
        cause: InstarError.reason(of: error))
    }
  }

  /// Makes a folder in the state folder of this user, or of another one.
  static func make(_ folder: String, of owner: DurableFile.Owner?) throws(InstarError) {
    let place = try OwnedFile(of: folder, owner: owner)
    guard mkdirat(place.folder, place.name, 0o700) != 0, errno != EEXIST else { return }
    throw cannotMake(
      folder, isFull: errno == ENOSPC || errno == EDQUOT, cause: String(cString: strerror(errno)))
  }

  /// - Parameter isFull: Also where a quota is used up.
  private static func cannotMake(_ folder: String, isFull: Bool, cause: String) -> InstarError {
    InstarError(
      isFull ? .noSpace : .stateFolderFailed, "cannot create the state folder '\(folder)'",
      cause: cause,
      next: isFull
        ? "free some space on its file system, or raise your quota, then \(CommandText.repetition)"
        : "choose another folder with --state-dir")
  }

  /// Takes the lock that a daemon holds for its life, so that a state folder has one daemon.
  ///
  /// - Returns: `nil` if another daemon holds it.
  public func tryLock() throws(InstarError) -> FolderLock? {
    try FolderLock.tryLock(path)
  }

  // MARK: - The phase journal

  /// Writes a phase. It is on disk when this returns.
  func record(_ phase: PhaseRecord) throws(InstarError) {
    try DurableFile.append(
      line: try WireCoder.line(phase), to: try file(of: phase.run), mode: 0o600, owner: owner,
      folderSyncs: phaseSyncs)
  }

  /// Removes the phases of a run that is in the ledger.
  ///
  /// - Parameter isDurable: Whether the removal is on disk when this returns.
  func close(run: String, isDurable: Bool) throws(InstarError) {
    let file = try file(of: run)
    // The file may serve another run: for a new one the kernel has to find a free inode.
    if !isDurable, ownRuns.withLock({ $0.count > 1 }) {
      try DurableFile.empty(file, owner: owner)
    } else {
      try DurableFile.remove(file, isDurable: isDurable, owner: owner)
    }
  }

  /// Returns the last phases of all open runs, oldest run first: runs that were cut off, and runs in progress in any
  /// process.
  ///
  /// - Returns: `unreadable` has one error for each file that is not a phase record. The files stay in place; the
  ///   caller reports each error.
  public func openPhases() throws(InstarError) -> (
    records: [PhaseRecord], unreadable: [InstarError]
  ) {
    try openPhases(without: [])
  }

  /// Returns the phases of the runs that may have been cut off: all but those in progress in this process.
  func openPhasesOfOthers() throws(InstarError) -> [PhaseRecord] {
    try openPhases(without: ownRuns.withLock { Set($0.map { $0 + ".json" }) }).records
  }

  private func openPhases(without known: Set<String>) throws(InstarError) -> (
    records: [PhaseRecord], unreadable: [InstarError]
  ) {
    var records: [PhaseRecord] = []
    var failures: [InstarError] = []
    for name in try names(in: phases) where name.hasSuffix(".json") && !known.contains(name) {
      do throws(InstarError) {
        let file = phases + "/" + name
        if let record = try readPhase(file: file), name == record.run + ".json" {
          records.append(record)
        }
      } catch {
        // Its run may have ended since the folder was listed.
        if access(phases + "/" + name, F_OK) == 0 { failures.append(error) }
      }
    }
    return (records, failures)
  }

  /// Removes the files of runs whose supervisors were killed before they had written a phase. Other files are not
  /// locked: their runs are in progress, or a recovery needs the lock.
  func removeLeftovers() throws(InstarError) {
    let own = ownRuns.withLock { $0 }
    for name in try names(in: phases) where name.hasSuffix(".json") {
      let run = String(name.dropLast(".json".count))
      if !own.contains(run) { removeLeftover(of: run) }
    }
  }

  /// Does nothing where the run has ended since the folder was listed: its file is gone.
  func removeLeftover(of run: String) {
    // A file that this user cannot lock must not keep other runs from being recovered.
    guard hasNoPhase(run), let lock = try? tryLock(run: run, makesFile: false) else { return }
    unlock(run: run, lock)
  }

  /// Whether a run has no phase. A file that is not a phase record may have one: it stays, and `openPhases` reports it.
  private func hasNoPhase(_ run: String) -> Bool { (try? phase(of: run) == nil) ?? false }

  /// The stores of `runsLeftOpen`, without those whose runs another process has recovered since.
  var storesLeftOpen: [String] {
    runsLeftOpen.withLock { runs in
      for run in runs.keys {
        // A phase that cannot be read belongs to an open run.
        do throws(InstarError) {
          if try phase(of: run) == nil { runs[run] = nil }
        } catch {
          continue
        }
      }
      return Array(runs.values)
    }
  }

  /// The last phase of one run; `nil` if the run has ended, or has none.
  func phase(of run: String) throws(InstarError) -> PhaseRecord? {
    let file = try file(of: run)
    guard access(file, F_OK) == 0, let record = try readPhase(file: file), record.run == run
    else { return nil }
    return record
  }

  /// Renames an unused file, which is locked, for a new run.
  ///
  /// - Returns: `nil` where there is none, or where the run has a file.
  func takeUnusedFile(for run: String) throws(InstarError) -> FolderLock? {
    guard let unused = unusedFiles.withLock({ $0.popLast() }) else { return nil }
    let file = try file(of: run)
    // The first phase brings the new name to disk.
    if try OwnedFile(of: self.file(of: unused.run), owner: owner).rename(to: "\(run).json"),
      unused.lock.isStillAt(file)
    {
      return unused.lock
    }
    remove(unused)
    return nil
  }

  private func remove(_ unused: (run: String, lock: FolderLock)) {
    // What cannot be removed now is removed with the next leftovers.
    if let file = try? file(of: unused.run) {
      try? DurableFile.remove(file, isDurable: false, owner: owner)
    }
    unused.lock.release()
  }

  /// Takes the lock of a run, to supervise or recover it.
  ///
  /// - Parameter makesFile: Whether the run gets a file where it has none.
  /// - Returns: `nil` if the run's supervisor lives, or its file is missing and is not made.
  func tryLock(run: String, makesFile: Bool = true) throws(InstarError) -> FolderLock? {
    let file = try file(of: run)
    while true {
      let place = try OwnedFile(of: file, owner: owner)
      if makesFile {
        let descriptor = openat(
          place.folder, place.name, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 || errno == EEXIST else {
          throw InstarError(
            .stateFolderFailed, "cannot lock run \(run)", cause: String(cString: strerror(errno)),
            next: "run: ls -l \(CommandText.quoted(file))")
        }
        // Also a file without a phase must be the owner's, who may have to remove it. If this fails, so does the first
        // phase.
        if descriptor >= 0 {
          if let owner { fchown(descriptor, owner.uid, owner.gid) }
          Foundation.close(descriptor)
        }
      }
      do {
        guard let lock = try FolderLock.tryLock(file) else { return nil }
        if lock.isStillAt(file) { return lock }
      } catch {
        // Its last holder deleted the file: create it again.
        var status = stat()
        if lstat(file, &status) == 0 { throw error }
        if !makesFile { return nil }
      }
    }
  }

  /// Releases the lock of a run. Where its file has no phase, the file is kept for the next run while this process has
  /// other runs, and is removed with the last one. A file that is not a phase record stays, and is reported by
  /// `openPhases`.
  func unlock(run: String, _ lock: FolderLock) {
    let hasNoPhase = hasNoPhase(run)
    let isUnused =
      hasNoPhase
      && (try? file(of: run)).map { lock.isStillAt($0) && Self.isEmpty($0) } == true
    if removeOwnRun(run, keepingFileFor: isUnused ? lock : nil) { return }
    // Deleted while locked: whoever opens the file from now on gets a new one.
    if hasNoPhase { remove((run, lock)) } else { lock.release() }
  }

  /// Ends a run of this process. Removes the unused files after the last one.
  ///
  /// - Parameter lock: That of its file, where the file may serve the next run.
  /// - Returns: Whether the file is kept.
  @discardableResult
  func removeOwnRun(_ run: String, keepingFileFor lock: FolderLock? = nil) -> Bool {
    let (isKept, unneeded) = ownRuns.withLock { own in
      own.remove(run)
      // In the same step, so that no file is kept after the last run has removed all.
      return unusedFiles.withLock { unused in
        if own.isEmpty {
          defer { unused = [] }
          return (false, unused)
        }
        if let lock { unused.append((run, lock)) }
        return (lock != nil, [])
      }
    }
    for file in unneeded { remove(file) }
    return isKept
  }

  // MARK: - Files

  private func file(of run: String) throws(InstarError) -> String {
    try RunIdentifier.require(run)
    return "\(phases)/\(run).json"
  }

  /// - Returns: `nil` where no line is complete.
  private func readPhase(file: String) throws(InstarError) -> PhaseRecord? {
    // Also one of root's, which the owner cannot read.
    if Self.isEmpty(file) { return nil }
    let data = try read(file)
    guard let end = data.lastIndex(of: 0x0A) else { return nil }
    let start = data[..<end].lastIndex(of: 0x0A).map { $0 + 1 } ?? data.startIndex
    do throws(InstarError) {
      return try WireCoder.message(PhaseRecord.self, from: data[start..<end])
    } catch {
      throw malformed(
        file, cause: "not a phase record: \(String(decoding: data.prefix(200), as: UTF8.self))")
    }
  }

  private func malformed(_ file: String, cause: String) -> InstarError {
    let quoted = CommandText.quoted(file)
    return InstarError(
      .stateFolderFailed, "cannot read the phase record '\(file)'", cause: cause,
      next: "to see the path of the store, run: cat \(quoted); then run: instarctl probe STORE; "
        + "if the store is not corrupt, run: mv \(quoted) \(CommandText.quoted(file + ".old"))")
  }

  func read(_ file: String) throws(InstarError) -> Data {
    do {
      return try Data(contentsOf: URL(fileURLWithPath: file))
    } catch {
      throw InstarError(
        .stateFolderFailed, "cannot read '\(file)'", cause: InstarError.reason(of: error),
        next: adviceOnReading(file, else: "run: ls -l \(CommandText.quoted(file))"))
    }
  }

  func names(in folder: String) throws(InstarError) -> [String] {
    do throws(InstarError) {
      return try FolderNames.all(in: folder).sorted()
    } catch {
      var failure = error
      failure.code = .stateFolderFailed
      throw failure
    }
  }
}
