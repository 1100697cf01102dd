import Foundation
import InstarLinux
public import InstarSchema
public import InstarWire
import Synchronization

/// The ledger: the reports of all runs, oldest first.
///
/// ```text
/// ledger/kept.N.jsonl    of the runs that were in ledger.1.jsonl to ledger.N.jsonl, those whose backup exists, or may
/// ledger/ledger.N.jsonl  a full file, which never changes; the greatest N is the newest
/// ledger/ledger.jsonl    the newest runs: the only file that is appended to
/// ```
///
/// Invariants:
/// - Files are changed under the lock of the folder `ledger`, which every process takes that appends.
/// - Each line is in one file that counts. A full file gets its number by one rename. A file `kept.N.jsonl` comes into
///   being by one rename too; from then on the files that it stands for do not count, whether they are removed or not.
/// - Readers need no lock: they open the file that is appended to before they list the others. If it becomes full
///   between the two, they find it twice and read it once.
extension StateFolder {
  private var ledgerFile: String { ledger + "/ledger.jsonl" }

  // MARK: Writing

  /// Appends a run to the ledger. It is on disk when this returns.
  ///
  /// - Parameters:
  ///   - path: The path of its store; `nil` for that of the report without symbolic links.
  ///   - mayBeThere: Whether an earlier supervisor may have appended the run. Then a second line is not appended.
  public func append(
    _ report: RunReport, recordedAs path: StorePath? = nil, mayBeThere: Bool = false
  ) throws(InstarError) {
    var report = report
    report.store = (path ?? StorePath(report.store)).text
    let line = try WireCoder.line(report)
    if !mayBeThere { return try ledgerLines.perform(line, commit: append) }
    let lock = try FolderLock.lock(ledger)
    defer { lock.release() }
    if try hasRun(report.run) { return }
    try appendLocked([line])
  }

  private func append(_ lines: [Data]) throws(InstarError) {
    let lock = try FolderLock.lock(ledger)
    defer { lock.release() }
    try appendLocked(lines)
  }

  private func appendLocked(_ lines: [Data]) throws(InstarError) {
    // If this fails, the file only becomes larger, and the next run tries once more.
    try? closeFullFile()
    try DurableFile.append(lines: lines, to: ledgerFile, mode: 0o600, owner: owner)
  }

  /// Renames the current ledger file to its number once it is full, or if only root can write it: the owner of the
  /// folder begins another one.
  private func closeFullFile() throws(InstarError) {
    guard let status = stat(of: ledgerFile), status.isRegular else { return }
    let isOthers =
      faccessat(AT_FDCWD, ledgerFile, R_OK | W_OK, AT_EACCESS) != 0 && errno == EACCES
    if isOthers, status.st_size == 0 { return try DurableFile.remove(ledgerFile, owner: owner) }
    guard isOthers || Int64(status.st_size) >= ledgerSize.withLock({ $0 }) else { return }
    let listing = try LedgerFiles(of: ledger)
    let number = max(listing.full.last ?? 0, listing.kept.last ?? 0) + 1
    let name = LedgerFiles.full(number)
    let place = try OwnedFile(of: ledgerFile, owner: owner)
    guard renameat(place.folder, place.name, place.folder, place.beside(name)) == 0 else {
      throw .systemFailure("cannot rename '\(ledgerFile)'", errno, code: .stateFolderFailed)
    }
    // Before the new file is made: a loss of power must not bring its name to disk without the other one.
    try DurableFile.synchronizeFolder(ledger)
  }

  /// Sets when a file is full, for the runs of this process.
  public func setLedgerSize(_ bytes: Int64) { ledgerSize.withLock { $0 = bytes } }

  /// Removes the oldest full files, but keeps their runs whose backups exist, or may: these are still listed, restored
  /// and removed in time. Files with runs of a rollout that is not finished stay too: its failures count after a
  /// restart.
  ///
  /// Then `copies.jsonl` and `removed.jsonl` lose what they say of the removed runs.
  ///
  /// - Parameters:
  ///   - patience: How long to wait for the file system of a store. Runs without an answer stay.
  ///   - mayAsk: Whether the file system of a store answers. The runs of other stores stay.
  /// - Returns: How many runs were removed.
  @discardableResult
  public func removeOldRuns(
    keeping files: Int, patience: Duration = .seconds(30),
    where mayAsk: (_ store: String) -> Bool = { _ in true }
  ) throws(InstarError) -> Int {
    let listing = try LedgerFiles(of: ledger)
    var removed = 0
    // Does not take the folder's lock, because runs would wait for it. Full files do not change.
    if let last = try lastSurplus(of: listing, keeping: files),
      let lock = try lockOldest(of: listing)
    {
      defer { lock.release() }
      for name in try FolderNames.all(in: ledger, prefix: "kept.", suffix: ".tmp") {
        try DurableFile.remove(ledger + "/" + name, isDurable: false, owner: owner)
      }
      var runs = OldRuns(
        removals: try backupRemovals(), copies: try copies(), reader: reader, patience: patience)
      let old = listing.keptNames + listing.counting.filter { $0 <= last }.map(LedgerFiles.full)
      for name in old {
        try LedgerFile(ledger + "/" + name).forEachLine { runs.add($0, where: mayAsk) }
      }
      let end = try LedgerFile(ledger + "/" + LedgerFiles.full(last)).writtenAt
      try DurableFile.write(
        runs.keptLines, to: ledger + "/" + LedgerFiles.kept(last), mode: 0o600, owner: owner)
      try forgetBackups(of: runs.removed, except: runs.keptForCopies, recordedUntil: end)
      removed = runs.removedCount
    }
    // Also what an earlier call left that was cut off here.
    for name in try LedgerFiles(of: ledger).outdated {
      try DurableFile.remove(ledger + "/" + name, owner: owner)
    }
    return removed
  }

  /// Returns the newest of the full files that may go; `nil` where all stay.
  private func lastSurplus(
    of listing: LedgerFiles, keeping files: Int
  ) throws(InstarError) -> Int? {
    let surplus = listing.counting.dropLast(files)
    let open = try rolloutRecords().filter { !$0.isFinished }
    guard let began = open.map(\.began).min() else { return surplus.last }
    var last: Int?
    for number in surplus {
      // Another process may have removed the file since it was listed.
      if let file = try openToRead(ledger + "/" + LedgerFiles.full(number)),
        file.isWritten(since: began)
      {
        break
      }
      last = number
    }
    return last
  }

  /// - Returns: `nil` where another process removes old files, or has done so since they were listed.
  private func lockOldest(of listing: LedgerFiles) throws(InstarError) -> FolderLock? {
    guard let oldest = listing.counting.first else { return nil }
    let file = ledger + "/" + LedgerFiles.full(oldest)
    do throws(InstarError) {
      guard let lock = try FolderLock.tryLock(file), lock.isStillAt(file) else { return nil }
      return lock
    } catch {
      if access(file, F_OK) != 0, errno == ENOENT { return nil }
      throw error
    }
  }

  // MARK: Reading

  /// The runs of one store, by any of its paths, or of all stores, oldest first, each with the copy of its backup that
  /// was made since.
  ///
  /// - Parameters:
  ///   - limit: The most runs; with a limit, those that were added last, and older files are not read.
  ///   - isWanted: Which runs count.
  /// - Returns: `unreadableLines` counts the lines that a crash cut off, or that another version wrote.
  public func history(
    store: String? = nil, limit: Int = .max, where isWanted: (RunReport) -> Bool = { _ in true }
  ) throws(InstarError) -> (reports: [RunReport], unreadableLines: Int) {
    let (reports, unreadableLines) = try newestRuns(limit, of: store) { report, _ -> RunReport? in
      isWanted(report) ? report : nil
    }
    return (reports, unreadableLines)
  }

  /// Finds the runs that `history` returns, for a reader who takes them slowly. Their reports stay in the ledger.
  public func recordedRuns(
    of store: String?, limit: Int = .max, where isWanted: (RunReport) -> Bool
  ) throws(InstarError) -> (runs: [RecordedRun], unreadableLines: Int) {
    // A store with many runs has one path in memory.
    var paths: Set<String> = []
    let (runs, unreadableLines) = try newestRuns(limit, of: store) {
      report, place -> RecordedRun? in
      guard isWanted(report) else { return nil }
      let path = paths.insert(report.store).memberAfterInsert
      return RecordedRun(
        run: report.run, store: path, place: place, copy: report.backupCopy)
    }
    return (runs, unreadableLines)
  }

  /// Reads the reports of runs that `recordedRuns` found, without those that were removed since.
  public func reports(
    of runs: some Collection<RecordedRun>
  ) throws(InstarError) -> [RunReport] {
    let files = try openLedger().keyed(by: \.identity)
    var reports: [String: RunReport] = [:]
    for run in runs {
      let line = try files[run.place.file]?.line(at: run.place)
      if let report = line.flatMap({ run.report(in: $0) }) { reports[run.run] = report }
    }
    let missing = runs.filter { reports[$0.run] == nil }
    if !missing.isEmpty { reports.merge(try movedReports(of: missing)) { first, _ in first } }
    return runs.compactMap { run in
      var report = reports[run.run]
      report?.backupCopy = run.copy
      return report
    }
  }

  /// Reads the reports of runs that are now among the old ones whose backups still exist.
  private func movedReports(of runs: [RecordedRun]) throws(InstarError) -> [String: RunReport] {
    let wanted = runs.keyed(by: \.run)
    var reports: [String: RunReport] = [:]
    for name in try LedgerFiles(of: ledger).keptNames {
      try openToRead(ledger + "/" + name)?.forEachLine { line in
        guard let report = RecordedRun.anyReport(in: line) else { return }
        if wanted[report.run]?.store == report.store { reports[report.run] = report }
      }
    }
    return reports
  }

  /// - Parameter pick: What is kept of a run; `nil` for nothing.
  private func newestRuns<Kept>(
    _ limit: Int, of store: String?, _ pick: (RunReport, LedgerFile.Place) -> Kept?
  ) throws(InstarError) -> (runs: [Kept], unreadableLines: Int) {
    // The path of a run is not resolved again: a folder of it may be a symbolic link to another user's folder by now.
    let wanted = store.map { StorePath($0).text }
    let copies = try copies()
    var parts: [[Kept]] = []
    var unreadableLines = 0
    var left = limit
    for file in try openLedger().reversed() where left > 0 {
      var part: [Kept] = []
      try file.forEachPlacedLine { line, place in
        guard var report = (try? WireCoder.message(RunReport.self, from: line))?.plausible else {
          unreadableLines += 1
          return
        }
        report.backupCopy =
          report.backupCopy ?? copies.path(ofRun: report.run, inLedger: report.store)
        guard wanted == nil || wanted == report.store, let kept = pick(report, place) else {
          return
        }
        part.append(kept)
        // Now and then: the ledger has many more runs than are wanted.
        if part.count / 2 > left { part.removeFirst(part.count - left) }
      }
      parts.append(part.suffix(left))
      left -= parts[parts.count - 1].count
    }
    return (parts.reversed().flatMap(\.self), unreadableLines)
  }

  /// Passes on the runs of some plans that started at a time or later, and all restores since, oldest first. Lines of
  /// other plans, and older files, are not decoded.
  ///
  /// - Parameter start: In seconds since 1970.
  func forEachRun(
    ofPlans plans: Set<String>, since start: Double, _ body: (LedgerRun) -> Void
  ) throws(InstarError) {
    var keys = [Data("\"result\":\"restored\"".utf8)]
    for plan in plans {
      keys.append(Data("\"plan\":".utf8) + (try WireCoder.line(plan).dropLast()))
    }
    for file in try openLedger() where file.isWritten(since: start) {
      try file.forEachLine { line in
        guard keys.contains(where: { line.range(of: $0) != nil }),
          let run = try? WireCoder.message(LedgerRun.self, from: line), run.startedAt >= start
        else { return }
        body(run)
      }
    }
  }

  /// Decodes only lines with the identifier: a ledger may have a line for each of 100,000 stores.
  func hasRun(_ run: String) throws(InstarError) -> Bool {
    let key = Data("\"run\":\"\(run)\"".utf8)
    for file in try openLedger().reversed() {
      var isThere = false
      try file.forEachLine { line in
        guard !isThere, line.range(of: key) != nil else { return }
        // A crash may have cut off the line.
        isThere = (try? WireCoder.message(RunReport.self, from: line))?.run == run
      }
      if isThere { return true }
    }
    return false
  }

  /// Whether the ledger proves that a run in it left no backup: each of its lines says that the run failed and names
  /// none, and no restore used one.
  func provesNoBackup(ofRun run: String) throws(InstarError) -> Bool {
    // Also in the line of a restore.
    let key = Data("\"\(run)\"".utf8)
    var isThere = false
    var mayHaveBackup = false
    for file in try openLedger() {
      try file.forEachLine { line in
        guard !mayHaveBackup, line.range(of: key) != nil else { return }
        guard let report = try? WireCoder.message(RunReport.self, from: line) else {
          // Another version may have written the line.
          mayHaveBackup = true
          return
        }
        if report.restoredRun == run { mayHaveBackup = true }
        guard report.run == run else { return }
        isThere = true
        if report.backup != nil || ![.failed, .refused, .busy].contains(report.result) {
          mayHaveBackup = true
        }
      }
    }
    return isThere && !mayHaveBackup
  }

  /// Passes on the runs of wanted stores that left a backup, oldest first.
  ///
  /// - Parameter keys: Lines with none of them are not decoded: many stores may be damaged at once. `nil` for all.
  func forEachRunWithBackup(
    inLinesWith keys: [Data]?, where isWanted: (_ store: String) -> Bool,
    _ body: (RunReport) -> Void
  ) throws(InstarError) {
    let key = Data("\"backup\":".utf8)
    for file in try openLedger() {
      try file.forEachLine { line in
        guard line.range(of: key) != nil,
          keys?.contains(where: { line.range(of: $0) != nil }) != false,
          let report = (try? WireCoder.message(RunReport.self, from: line))?.plausible,
          isWanted(report.store)
        else { return }
        body(report)
      }
    }
  }

  /// Opens the files that count, oldest first. What becomes of their names afterwards does not matter to the reader.
  private func openLedger() throws(InstarError) -> [LedgerFile] {
    while true {
      let newest = try openToRead(ledgerFile)
      let listing: LedgerFiles
      do throws(InstarError) {
        listing = try LedgerFiles(of: ledger)
      } catch {
        guard access(ledger, F_OK) != 0, errno == ENOENT else {
          throw unreadableLedger(ledger, cause: error.cause)
        }
        return []
      }
      var files: [LedgerFile] = []
      let names = listing.names
      for name in names {
        if let file = try openToRead(ledger + "/" + name) { files.append(file) }
      }
      // Another process removed old files after they were listed: their runs may be in a new file.
      guard files.count == names.count else { continue }
      if let newest, !files.contains(where: { $0.identity == newest.identity }) {
        files.append(newest)
      }
      return files
    }
  }

  /// - Returns: `nil` where there is no such file.
  private func openToRead(_ path: String) throws(InstarError) -> LedgerFile? {
    do throws(InstarError) {
      return try LedgerFile(path)
    } catch {
      // Also one of root's without a run, which the owner cannot read.
      if path == ledgerFile, Self.isEmpty(path) { return nil }
      guard access(path, F_OK) != 0, errno == ENOENT else {
        throw unreadableLedger(path, cause: error.cause)
      }
      return nil
    }
  }

  private func unreadableLedger(_ path: String, cause: String) -> InstarError {
    Self.failureIfNotAFolder(self.path)
      ?? InstarError(
        .stateFolderFailed, "cannot read the ledger '\(path)'", cause: cause,
        next: adviceOnReading(
          path,
          else: Self.asOwner(of: self.path) + ", with --state-dir \(CommandText.quoted(self.path))")
      )
  }
}
