import Foundation
import InstarLinux
import InstarWire

/// The runs in the oldest files of the ledger: those whose backups exist, or may, stay, and the others go.
struct OldRuns {
  /// The lines of the runs that stay.
  private(set) var keptLines = Data()
  /// The number of runs that go.
  private(set) var removedCount = 0
  /// The runs that go.
  private(set) var removed: Set<BackupReference.Identity> = []
  /// The runs that stay for their copies, although their backups were removed.
  private(set) var keptForCopies: Set<BackupReference.Identity> = []

  private let removedBackups: Set<BackupReference.Identity>
  private let copies: StateFolder.KeptCopies
  private let reader: FileReader
  private let patience: Duration
  private var isSilent: (_ path: String) -> Bool
  private let backupKey = Data("\"backup\":".utf8)

  /// - Parameters:
  ///   - reader: Asks about the files of stores.
  ///   - patience: How long to wait for the file system of a store.
  init(
    removedBackups: Set<BackupReference.Identity>, copies: StateFolder.KeptCopies,
    reader: FileReader, patience: Duration
  ) {
    self.removedBackups = removedBackups
    self.copies = copies
    self.reader = reader
    self.patience = patience
    isSilent = reader.silence()
  }

  /// Adds a run by its line in the ledger.
  ///
  /// - Parameter mayAsk: Whether the file system of a store answers. The runs of other stores stay.
  mutating func add(_ line: Data, where mayAsk: (_ store: String) -> Bool) {
    let report = try? WireCoder.message(RunReport.self, from: line)
    let identity = report.map { BackupReference.Identity(run: $0.run, store: $0.store) }
    let isRemoved = identity.map(removedBackups.contains) ?? false
    guard mayHaveBackup(line, report, isRemoved: isRemoved, where: mayAsk) else {
      if let identity { removed.insert(identity) }
      removedCount += 1
      return
    }
    if let identity, isRemoved { keptForCopies.insert(identity) }
    keptLines.append(line)
    keptLines.append(0x0A)
  }

  /// - Parameter isRemoved: Whether the backup was removed on purpose.
  private mutating func mayHaveBackup(
    _ line: Data, _ report: RunReport?, isRemoved: Bool, where mayAsk: (_ store: String) -> Bool
  ) -> Bool {
    guard line.range(of: backupKey) != nil else { return false }
    // A line that cannot be decoded may be of another version, and its backup may exist: it stays.
    guard let report else { return true }
    let files = FilesOfBackup(report, copy: copies.path(ofRun: report.run, of: report.store))
    guard mayAsk(report.store), !files.paths.contains(where: isSilent) else { return true }
    let answers = reader.answers(about: files.paths, patience: patience, FilesOfBackup.look)
    // A run without an answer stays, and the others on its file system.
    if answers.count < files.paths.count { isSilent = reader.silence() }
    return files.mayHaveBackup(answers, isRemoved: isRemoved)
  }

  /// What tells whether the backup of a run exists. Each file is a question of its own, because each may be on another
  /// file system that does not answer.
  private struct FilesOfBackup {
    let backup: String?
    /// The copy, the backup and the folder of the store, as far as there are any.
    let paths: [String]

    init(_ report: RunReport, copy: String?) {
      backup = report.backup
      let folder = (report.store as NSString).deletingLastPathComponent
      paths = backup.map { [copy ?? report.backupCopy, $0, folder].compactMap(\.self) } ?? []
    }

    /// - Returns: The error of a path; 0 where it exists.
    static func look(_ path: String) -> Int32 {
      var status = stat()
      return lstat(path, &status) == 0 ? 0 : errno
    }

    /// Whether the backup exists, or may: the file system of a store whose folder is missing may be unmounted now. Of a
    /// removed backup only the copy counts, which is still to be removed.
    func mayHaveBackup(_ answers: [Int32], isRemoved: Bool) -> Bool {
      guard answers.count == paths.count else { return true }
      guard backup != nil else { return false }
      let copy = answers.dropLast(2).first
      if copy == 0 || isRemoved { return copy == 0 }
      let ofBackup = answers[answers.count - 2]
      return ![ENOENT, ENOTDIR].contains(ofBackup) || answers.last != 0
    }
  }
}
