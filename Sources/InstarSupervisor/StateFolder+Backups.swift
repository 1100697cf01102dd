import Foundation
import InstarLinux
public import InstarSchema
public import InstarWire

/// A backup that nobody removed on purpose.
public struct ListedBackup: Sendable, Hashable {
  public var reference: BackupReference
  /// When its run started, in seconds since 1970.
  public var madeAt: Double
  /// The size of the file; `nil` where it is missing or unreadable.
  public var bytes: Int64?
  /// The size of its copy in another folder; `nil` where none is found.
  public var copyBytes: Int64?
  /// Where a copy is to be, whether it is there or not.
  public var copyTo: BackupFolder?
  /// Why this user cannot tell whether the file exists.
  public var error: InstarError?

  /// Whether the file is known to be gone, and its copy too.
  public var isMissing: Bool { bytes == nil && error == nil && copyBytes == nil }
  /// The folder of its store.
  public var folder: String { (reference.store as NSString).deletingLastPathComponent }
  /// Whether `restore` does not refuse it for what is known without reading it.
  var isRestorable: Bool { !isMissing && reference.damage == nil }
  /// Whether only the copy is left.
  public var isCopyOnly: Bool { bytes == nil && error == nil && copyBytes != nil }
  /// The size of the files of large values beside the backup; zero where its manifest does not know it.
  public var externalBytes: Int64 { reference.manifest?.plausible.externalBytes ?? 0 }
  /// What the backup and its copy take, with their files of large values.
  public var occupiedBytes: Int64 {
    [bytes, copyBytes].compactMap(\.self).flatMap { [$0, externalBytes] }.saturatingSum
  }
  /// Whether the backup can have a copy and has none.
  var isWithoutCopy: Bool {
    bytes != nil && copyBytes == nil && reference.manifest?.isSound == true
  }

  /// The backup of a run; `nil` where the run left none.
  ///
  /// - Parameters:
  ///   - report: As the ledger has it: its store's path is that of a `StorePath`.
  ///   - copy: The copy that was made last, where the run's own report cannot know of it.
  public init?(_ report: RunReport, copy: String? = nil) {
    guard let path = report.backup else { return nil }
    let reference = BackupReference(
      run: report.run, store: report.store, path: path, manifest: report.manifest,
      copy: copy ?? report.backupCopy)
    self.init(
      reference, madeAt: report.manifest?.madeAt ?? report.startedAt, copyTo: report.copyTo)
  }

  init(_ reference: BackupReference, madeAt: Double, copyTo: BackupFolder? = nil) {
    self.reference = reference
    self.madeAt = madeAt
    self.copyTo = copyTo
    var status = stat()
    if let copy = reference.copy, lstat(copy, &status) == 0 {
      copyBytes = Int64(status.st_size)
    }
    guard lstat(reference.path, &status) != 0 else {
      bytes = Int64(status.st_size)
      return
    }
    let code = errno
    guard code != ENOENT, code != ENOTDIR else { return }
    error = .unreadable(
      reference.path, "cannot read the backup of run \(reference.run)", store: reference.store,
      code: code)
  }
}

/// Backups, as the ledger knows them, and as their manifests beside the stores do: a ledger may be lost, and a store
/// may have been migrated with another state folder. `ledger/removed.jsonl` names those that were removed on purpose,
/// one a line, and `ledger/copies.jsonl` the copies in other folders that were read back. A removed backup whose copy
/// exists again, because its disk was not mounted, is listed again.
///
/// A line of either file is about one run of one store. A tree of stores that was copied with its folders `.instar` has
/// backups of the same runs, and in one folder for copies these have the same file as their copy.
extension StateFolder {
  private struct Removal: Codable {
    var run: String
    var store: String
    var backup: String
    var removedAt: Double
    var why: String

    var identity: BackupReference.Identity { .init(run: run, store: store) }
  }

  fileprivate struct CopyRecord: Codable {
    var run: String
    var store: String
    var madeAt: Double
    var copy: BackupCopy

    var identity: BackupReference.Identity { .init(run: run, store: store) }
  }

  /// The copies that were read back. The last line about a run of a store counts.
  struct KeptCopies {
    /// By run, one for each store.
    private var records: [String: [CopyRecord]] = [:]

    fileprivate init(_ records: [CopyRecord]) {
      for record in records {
        self.records[record.run, default: []].removeAll { $0.store == record.store }
        self.records[record.run, default: []].append(record)
      }
    }

    private func record(of backup: BackupReference.Identity) -> CopyRecord? {
      guard let ofRun = records[backup.run] else { return nil }
      if let record = ofRun.first(where: { $0.store == backup.store }) { return record }
      let store = StorePath(backup.store).text
      return ofRun.first { $0.store == store }
    }

    /// Returns the path of a backup's copy; `nil` where none was recorded.
    func path(ofRun run: String, of store: String) -> String? {
      record(of: .init(run: run, store: store))?.copy.path
    }

    /// Returns the backups of other stores whose copy is the same file.
    func others(withCopyOf backup: BackupReference) -> [BackupReference.Identity] {
      guard let copy = backup.copy, let ofRun = records[backup.run], ofRun.count > 1 else {
        return []
      }
      let own = record(of: backup.identity)?.store
      return ofRun.filter { $0.store != own && Self.isSameFile($0.copy.path, copy) }
        .map(\.identity)
    }

    /// The folder for copies may be spelled with a link.
    private static func isSameFile(_ path: String, _ other: String) -> Bool {
      if path == other { return true }
      var (first, second) = (stat(), stat())
      return lstat(path, &first) == 0 && lstat(other, &second) == 0
        && FileIdentity(first) == FileIdentity(second)
    }
  }

  private var removalsFile: String { ledger + "/removed.jsonl" }
  private var copiesFile: String { ledger + "/copies.jsonl" }

  /// Returns the backups of one store, or of all that the ledger names, oldest first, without those that were removed
  /// on purpose.
  public func backups(of store: String? = nil) throws(InstarError) -> [ListedBackup] {
    try backups(ofStores: store.map { [StorePath($0).text] })
  }

  /// Returns the backups of several stores, oldest first, without those that were removed on purpose. Reads the ledger
  /// once.
  public func backups(ofAll stores: [String]) throws(InstarError) -> [ListedBackup] {
    try backups(ofStores: Set(stores.map { StorePath($0).text }))
  }

  /// Returns the backups of the stores below a folder that are wanted, oldest first, without those that were removed on
  /// purpose. Asks nothing about other stores, whose file system may not answer.
  ///
  /// - Parameters:
  ///   - folder: As a `StorePath` has it.
  ///   - isWanted: Called with the paths of stores as the ledger has them.
  public func backups(
    below folder: String, where isWanted: (_ store: String) -> Bool
  ) throws(InstarError) -> [ListedBackup] {
    // Without the end of the line and the quotation mark.
    let path = try WireCoder.line(folder == "/" ? folder : folder + "/").dropLast(2)
    return try backups(inLinesWith: [Data("\"store\":".utf8) + path], of: nil, where: isWanted)
  }

  /// - Parameter wanted: Their paths, as a `StorePath` has them; `nil` for all that the ledger names.
  private func backups(ofStores wanted: Set<String>?) throws(InstarError) -> [ListedBackup] {
    var keys: [Data]?
    // To search a line for more paths takes longer than to decode it.
    if let wanted, wanted.count <= 32 {
      keys = []
      for store in wanted {
        keys?.append(Data("\"store\":".utf8) + (try WireCoder.line(store).dropLast()))
      }
    }
    return try backups(inLinesWith: keys, of: wanted) { wanted?.contains($0) != false }
  }

  /// - Parameters:
  ///   - keys: As of `forEachRunWithBackup`.
  ///   - stores: Beside which backups are also looked for; `nil` for the wanted ones in the ledger.
  private func backups(
    inLinesWith keys: [Data]?, of stores: Set<String>?, where isWanted: (String) -> Bool
  ) throws(InstarError) -> [ListedBackup] {
    let copies = try copies()
    let listed = try backupsInLedger(keys, copies: copies, where: isWanted)
    return Self.addingFound(
      to: listed, of: stores ?? Set(listed.map(\.reference.store)), copies)
  }

  /// Adds the backups beside stores that the ledger does not have.
  private static func addingFound(
    to listed: [ListedBackup], of stores: Set<String>, _ copies: KeptCopies
  ) -> [ListedBackup] {
    // Of a tree that was moved, the ledger has the same runs under the old paths.
    let known = Set(listed.map(\.reference.identity))
    let found = FoundBackups(stores: stores).all
      .filter { !known.contains($0.reference.identity) }
      .map { backup in
        var reference = backup.reference
        reference.copy = copies.path(ofRun: reference.run, of: reference.store)
        return ListedBackup(reference, madeAt: backup.madeAt)
      }
    return merge(listed, found)
  }

  /// Returns what to do about each of some damaged stores: to restore a backup only where `restore` would do so. The
  /// commands use this state folder. Reads the ledger once.
  public func adviceOnDamage(of stores: [String]) -> [String: String] {
    let runs = stores.count == 1 ? backupRuns(of: stores[0]) : backupRuns()
    let advice = stores.map { store in
      let remedy = remedy(of: store, runs, .content) ?? CommandText.restoring(store)
      return (store, naming(folderOf: store, in: remedy))
    }
    return Dictionary(advice, uniquingKeysWith: { $1 })
  }

  /// What a keeper's advice is about. A keeper knows no backups.
  enum Damage: CaseIterable, Sendable {
    /// The content of a store that SQLite can open.
    case content
    /// The file of a store: SQLite cannot open it, so `restore` refuses it.
    case file
    /// A file that is not a store. It was one if there is a backup.
    case unknownFile

    func advice(on store: String) -> String {
      switch self {
      case .content: CommandText.restoring(store)
      case .file: CommandText.replacing(store)
      case .unknownFile: CommandText.checking(store)
      }
    }
  }

  /// What the ledger says about backups. Nothing was asked about the files of any store.
  struct BackupRuns: Sendable {
    /// What the advice needs of the report of a run that left a backup. A large ledger has more reports than fit in
    /// memory.
    fileprivate struct Entry {
      let run: String
      let backup: String
      let copy: String?
      let madeAt: Double
    }

    /// The runs that left a backup, by the path of their store.
    fileprivate var runs: [String: [Entry]] = [:]
    /// The manifests of the backups of damaged stores.
    fileprivate var damaged: [BackupReference.Identity: BackupManifest] = [:]
    fileprivate var copies = KeptCopies([])
    fileprivate var removed: Set<BackupReference.Identity> = []
    /// `false` where the ledger cannot be read.
    fileprivate var areKnown = true

    fileprivate mutating func add(_ report: RunReport) {
      guard let backup = report.backup else { return }
      let madeAt = report.manifest?.madeAt ?? report.startedAt
      runs[report.store, default: []].append(
        Entry(run: report.run, backup: backup, copy: report.backupCopy, madeAt: madeAt))
      let identity = BackupReference.Identity(run: report.run, store: report.store)
      damaged[identity] = report.manifest.flatMap { $0.isSound ? nil : $0 }
    }

    /// Returns the backups of a store. Asks about their files.
    fileprivate func backups(of store: String) -> [ListedBackup] {
      (runs[store] ?? []).map { entry in
        let reference = BackupReference(
          run: entry.run, store: store, path: entry.backup,
          manifest: damaged[.init(run: entry.run, store: store)],
          copy: copies.path(ofRun: entry.run, of: store) ?? entry.copy)
        return ListedBackup(reference, madeAt: entry.madeAt)
      }
    }
  }

  /// Reads the ledger once, for the advice on one damaged store or on several.
  func backupRuns(of store: String? = nil) -> BackupRuns {
    var runs = BackupRuns()
    do throws(InstarError) {
      runs.copies = try copies()
      runs.removed = try removedBackups()
      let path = store.map { StorePath($0).text }
      var keys: [Data]?
      if let path { keys = [Data("\"store\":".utf8) + (try WireCoder.line(path).dropLast())] }
      try forEachRunWithBackup(inLinesWith: keys, where: { path == nil || path == $0 }) {
        runs.add($0)
      }
    } catch {
      // `restore` says why.
      runs.areKnown = false
    }
    return runs
  }

  /// Returns what to do about one store, without the state folder; `nil` if that is what the keeper says.
  func remedy(of store: String, _ runs: BackupRuns, _ damage: Damage) -> String? {
    // `restore` says why they are not.
    guard runs.areKnown else { return nil }
    let path = StorePath(store).text
    var listed = LedgerBackups(copies: runs.copies, removed: runs.removed)
    for backup in runs.backups(of: path) { listed.add(backup) }
    let own = Self.addingFound(to: listed.all, of: [path], runs.copies)
    guard let usable = own.last(where: \.isRestorable) else {
      return damage == .unknownFile ? nil : CommandText.leavingAlone(store)
    }
    let run = usable.reference.run
    switch damage {
    case .content: return usable == own.last ? nil : CommandText.restoring(store, run: run)
    case .file, .unknownFile: return CommandText.replacement(of: store, byBackupOf: run)
    }
  }

  /// Whether a backup was not removed.
  private static func isListed(
    _ backup: ListedBackup, _ copies: KeptCopies, without removed: Set<BackupReference.Identity>
  ) -> Bool {
    guard removed.contains(backup.reference.identity) else { return true }
    // A copy whose disk was not mounted when its backup was removed is still to be removed, unless another store needs
    // it.
    let isLast = removed.isSuperset(of: copies.others(withCopyOf: backup.reference))
    return backup.copyBytes != nil && isLast
  }

  /// Merges two lists. Each stays in its own order, that of the runs: a clock may have been set back.
  private static func merge(_ first: [ListedBackup], _ second: [ListedBackup]) -> [ListedBackup] {
    var merged: [ListedBackup] = []
    var rest = second[...]
    for backup in first {
      while let next = rest.first, next.madeAt < backup.madeAt {
        merged.append(next)
        rest.removeFirst()
      }
      merged.append(backup)
    }
    return merged + rest
  }

  private func backupsInLedger(
    _ keys: [Data]?, copies: KeptCopies, where isWanted: (String) -> Bool
  ) throws(InstarError) -> [ListedBackup] {
    var found = LedgerBackups(copies: copies, removed: try removedBackups())
    try forEachRunWithBackup(inLinesWith: keys, where: isWanted) { found.add($0) }
    return found.all
  }

  /// The backups of runs in the order of the ledger. A large ledger has more reports than fit in memory.
  private struct LedgerBackups {
    let copies: KeptCopies
    let removed: Set<BackupReference.Identity>
    private var known: [String: ListedBackup] = [:]
    private var order: [String] = []

    init(copies: KeptCopies, removed: Set<BackupReference.Identity>) {
      self.copies = copies
      self.removed = removed
    }

    var all: [ListedBackup] { order.compactMap { known[$0] } }

    mutating func add(_ report: RunReport) {
      let copy = copies.path(ofRun: report.run, of: report.store)
      if let backup = ListedBackup(report, copy: copy) { add(backup) }
    }

    mutating func add(_ backup: ListedBackup) {
      guard StateFolder.isListed(backup, copies, without: removed) else { return }
      let run = backup.reference.run
      // A recovery that could not end its journal has a second line.
      if known[run] == nil { order.append(run) }
      known[run] = backup
    }
  }

  /// Returns the backup of one run of a store, by default of the newest run that made one.
  ///
  /// - Throws: `missingBackup` where there is none; `damagedBackup` where the newest one is of a damaged store, so that
  ///   nobody restores an older one unawares. Whether the file exists is found out when it is used.
  public func backup(of store: String, run: String?) throws(InstarError) -> BackupReference {
    let backups = try backups(of: store)
    if let run, let found = backups.last(where: { $0.reference.run == run }) {
      return found.reference
    }
    if run == nil, let newest = backups.last?.reference {
      guard let damage = newest.damage else { return newest }
      let usable = backups.last(where: \.isRestorable)
      throw completing(Self.damaged(newest, damage, older: usable?.reference))
    }
    let error = InstarError(
      .missingBackup, "cannot restore '\(store)'", store: store,
      cause: run.map { "the backup of run \($0) is not in the ledger, or was removed" }
        ?? "neither the ledger in '\(path)' nor the folder '.instar' beside the store has a backup of it",
      state: "unchanged",
      next: run == nil
        ? Self.adviceOnLedger(CommandText.quoted(store))
        : "to list the backups, run: instarctl backups list \(CommandText.quoted(store))")
    // The advice without a run is about other state folders.
    throw run == nil ? error : completing(error)
  }

  /// Where the ledger with the backups of a store may be. Only root can read the one of the service.
  private static func adviceOnLedger(_ store: String) -> String {
    let folder =
      "pass the state folder of the instard that migrated the store: instarctl restore --state-dir FOLDER \(store)"
    return geteuid() == 0 ? folder : "run as root: instarctl restore \(store); or \(folder)"
  }

  /// Brings the removal of a run's files to disk before the state folder forgets them: after a loss of power nobody
  /// would remove them again. Does nothing on the state folder's own file system, which keeps the order.
  ///
  /// If the file system does not answer in time, the files are gone all the same, unless the power fails too.
  ///
  /// - Parameter folder: `.instar/` beside the store, or another folder of backups.
  func synchronizeRemovals(in folder: String) {
    _ = reader.answers(about: [folder]) { [path] in Self.synchronizeRemovals(in: $0, of: path) }
  }

  private static func synchronizeRemovals(in folder: String, of path: String) {
    // The last removal also removes the folder.
    let folder =
      access(folder, F_OK) == 0 ? folder : (folder as NSString).deletingLastPathComponent
    var (own, other) = (stat(), stat())
    guard stat(path, &own) == 0, lstat(folder, &other) == 0, own.st_dev != other.st_dev else {
      return
    }
    // If this fails, the files are gone all the same, unless the power fails too.
    try? DurableFile.synchronizeFolder(folder)
  }

  private static func damaged(
    _ backup: BackupReference, _ damage: String, older: BackupReference?
  ) -> InstarError {
    InstarError(
      .damagedBackup, "cannot restore '\(backup.store)'", store: backup.store,
      cause: "the newest backup, of run \(backup.run), is of a store that was damaged: \(damage)",
      state: "unchanged",
      next: older.map {
        "to restore the newest sound backup, run: \(CommandText.restore(backup.store, run: $0.run))"
      } ?? "to list the backups, run: instarctl backups list \(CommandText.quoted(backup.store))")
  }

  /// Records that a copy of a backup was read back.
  func noteCopy(_ copy: BackupCopy, of backup: BackupReference) throws(InstarError) {
    let record = CopyRecord(
      run: backup.run, store: StorePath(backup.store).text,
      madeAt: Date().timeIntervalSince1970, copy: copy)
    let line = try WireCoder.line(record)
    let lock = try FolderLock.lock(ledger)
    defer { lock.release() }
    try DurableFile.append(line: line, to: copiesFile, mode: 0o600, owner: owner)
  }

  func copies() throws(InstarError) -> KeptCopies {
    guard access(copiesFile, F_OK) == 0 else { return KeptCopies([]) }
    // A line that a crash cut off is that of a copy that is read back and recorded again.
    return KeptCopies(
      try read(copiesFile).split(separator: 0x0A).compactMap {
        try? WireCoder.message(CopyRecord.self, from: Data($0))
      })
  }

  /// Returns what is to be removed of a backup: not its copy, while that is the copy of another store's backup which
  /// was not removed.
  func removablePart(
    of backup: BackupReference, _ copies: KeptCopies
  ) throws(InstarError) -> BackupReference {
    let others = copies.others(withCopyOf: backup)
    guard !others.isEmpty else { return backup }
    return try removedBackups().isSuperset(of: others) ? backup : backup.withoutCopy
  }

  /// Records that a backup was removed on purpose.
  func noteRemoval(of backup: BackupReference, why: String) throws(InstarError) {
    let removal = Removal(
      run: backup.run, store: backup.store, backup: backup.path,
      removedAt: Date().timeIntervalSince1970, why: why)
    let line = try WireCoder.line(removal)
    let lock = try FolderLock.lock(ledger)
    defer { lock.release() }
    try DurableFile.append(line: line, to: removalsFile, mode: 0o600, owner: owner)
  }

  /// Shortens `removed.jsonl` and `copies.jsonl` after runs were removed from the ledger.
  ///
  /// A removal until then concerns a run that has left the ledger, or one of `keptRuns`: a run's line comes before the
  /// removal of its backup. After a change of the clock a line may go too early; the backup is then listed as missing.
  /// Lines that cannot be decoded stay.
  ///
  /// - Parameters:
  ///   - removedRuns: Those that have left the ledger.
  ///   - keptRuns: Those that stay for their copies, although their backups were removed.
  ///   - end: When the newest run was added that may have been removed, in seconds since 1970.
  func forgetBackups(
    of removedRuns: Set<BackupReference.Identity>, except keptRuns: Set<BackupReference.Identity>,
    recordedUntil end: Double
  ) throws(InstarError) {
    let lock = try FolderLock.lock(ledger)
    defer { lock.release() }
    var forgotten = removedRuns
    try shorten(removalsFile, Removal.self) {
      guard $0.removedAt <= end, !keptRuns.contains($0.identity) else { return false }
      // The ledger never had the runs of a tree that was copied, but there may be copies of their backups.
      forgotten.insert($0.identity)
      return true
    }
    // A copy that is missing may be on a file system that is unmounted now: only run and removal decide.
    try shorten(copiesFile, CopyRecord.self) { forgotten.contains($0.identity) }
  }

  private func shorten<Record: Decodable>(
    _ file: String, _ record: Record.Type, where isOld: (Record) -> Bool
  ) throws(InstarError) {
    guard access(file, F_OK) == 0 else { return }
    let lines = try read(file).split(separator: 0x0A)
    let kept = lines.filter { line in
      (try? WireCoder.message(record, from: Data(line))).map { !isOld($0) } ?? true
    }
    guard kept.count < lines.count else { return }
    let content = Data(kept.flatMap { $0 + [0x0A] })
    try DurableFile.write(content, to: file, mode: 0o600, owner: owner)
  }

  // MARK: The regular check

  /// Its time of change is when backups were last checked.
  private var checkFile: String { path + "/backups-checked" }

  /// Returns how long it is until backups are to be checked again: at most one interval, also after the clock was set
  /// back.
  public func timeToBackupCheck(every interval: Duration) -> Duration {
    var status = stat()
    guard stat(checkFile, &status) == 0 else { return .zero }
    let passed = Duration.seconds(Date().timeIntervalSince1970 - Double(status.st_mtim.tv_sec))
    return min(max(interval - passed, .zero), interval)
  }

  /// Records that backups were checked.
  public func noteBackupCheck() throws(InstarError) {
    // The file is never replaced: a crash would leave the new one under its temporary name.
    if utimensat(AT_FDCWD, checkFile, nil, AT_SYMLINK_NOFOLLOW) == 0 { return }
    try DurableFile.append(line: Data(), to: checkFile, mode: 0o600, owner: owner)
  }

  func removedBackups() throws(InstarError) -> Set<BackupReference.Identity> {
    guard access(removalsFile, F_OK) == 0 else { return [] }
    // A line that a crash cut off names a backup that is gone all the same; it is then listed as missing.
    return Set(
      try read(removalsFile).split(separator: 0x0A).compactMap {
        (try? WireCoder.message(Removal.self, from: Data($0)))?.identity
      })
  }
}

extension BackupReference {
  /// The damage that the store had when the backup was made; `nil` for a sound one, as far as its manifest knows.
  fileprivate var damage: String? {
    manifest.flatMap { $0.isSound ? nil : $0.check }
  }
}
