import Foundation
import InstarLinux
import InstarSchema
import InstarWire

/// The runs in the oldest files of the ledger: those whose backups exist, or may, stay, and the others go.
///
/// A run with a copy stays until Instar removes the copy, or is told to forget it: the folder of a missing copy may be
/// the empty mount point of its disk. What bounds the lines that stay for copies that are gone: there is one for each
/// copy that a lost disk had, and one for each that somebody else deleted. A copy that Instar removes leaves none.
struct OldRuns {
  /// The lines of the runs that stay.
  private(set) var keptLines = Data()
  /// The number of runs that go.
  private(set) var removedCount = 0
  /// The runs that go.
  private(set) var removed: Set<BackupReference.Identity> = []
  /// The runs that stay for their copies, although their backups were removed.
  private(set) var keptForCopies: Set<BackupReference.Identity> = []

  private let removals: [BackupReference.Identity: StateFolder.RemovedPart]
  private let copies: StateFolder.KeptCopies
  private let reader: FileReader
  private let patience: Duration
  private var isSilent: (_ path: String) -> Bool
  private let backupKey = Data("\"backup\":".utf8)

  /// - Parameters:
  ///   - removals: As of `StateFolder.backupRemovals`.
  ///   - reader: Asks about the files of stores.
  ///   - patience: How long to wait for the file system of a store.
  init(
    removals: [BackupReference.Identity: StateFolder.RemovedPart], copies: StateFolder.KeptCopies,
    reader: FileReader, patience: Duration
  ) {
    self.removals = removals
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
    let removedPart = identity.flatMap { removals[$0] }
    guard mayHaveBackup(line, report, removed: removedPart, where: mayAsk) else {
      if let identity { removed.insert(identity) }
      removedCount += 1
      return
    }
    if let identity, removedPart != nil { keptForCopies.insert(identity) }
    keptLines.append(line)
    keptLines.append(0x0A)
  }

  /// - Parameter part: What was removed on purpose.
  private mutating func mayHaveBackup(
    _ line: Data, _ report: RunReport?, removed part: StateFolder.RemovedPart?,
    where mayAsk: (_ store: String) -> Bool
  ) -> Bool {
    guard line.range(of: backupKey) != nil else { return false }
    // A line that cannot be decoded may be of another version, and its backup may exist: it stays.
    guard let report else { return true }
    guard mayAsk(report.store), !isSilent(report.store) else { return true }
    guard let backup = report.backup else { return false }
    // The store of a copy may be spelled with a symbolic link, which is resolved.
    let recorded = ask(about: [report.store]) { [copies] in
      copies.path(ofRun: report.run, of: $0)
    }
    guard let recorded = recorded?.first else { return true }
    let copy = recorded ?? report.backupCopy
    guard copy == nil || part == .all else { return true }
    let files = FilesOfBackup(
      copy: copy, backup: backup, folder: report.store.parentFolder)
    guard !files.paths.contains(where: isSilent),
      let errors = ask(about: files.paths, FilesOfBackup.error(of:))
    else { return true }
    return files.mayExist(
      Dictionary(zip(files.paths, errors), uniquingKeysWith: { $1 }), isRemoved: part != nil)
  }

  /// - Returns: `nil` where a path has no answer. A run without an answer stays, and the others on its file system.
  private mutating func ask<Answer: Sendable>(
    about paths: [String], _ look: @escaping @Sendable (String) -> Answer
  ) -> [Answer]? {
    let answers = reader.answers(about: paths, patience: patience, look)
    if answers.count == paths.count { return answers }
    isSilent = reader.silence()
    return nil
  }

  /// What tells whether the backup of a run exists. Each file is a question of its own, because each may be on another
  /// file system that does not answer.
  private struct FilesOfBackup {
    /// The copy in another folder; `nil` without one.
    let copy: String?
    let backup: String
    /// The folder of the store.
    let folder: String

    var paths: [String] { [copy, copyFolder, backup, folder].compactMap(\.self) }

    private var copyFolder: String? { copy?.parentFolder }

    /// - Returns: The error of a path; 0 where it exists.
    static func error(of path: String) -> Int32 {
      var status = stat()
      return lstat(path, &status) == 0 ? 0 : errno
    }

    /// Whether the backup or its copy exists, or may. Of a removed backup only the copy counts: somebody may have put
    /// it back.
    ///
    /// - Parameter errors: As of `error(of:)`, by path.
    func mayExist(_ errors: [String: Int32], isRemoved: Bool) -> Bool {
      if let copy, let copyFolder, Self.mayExist(copy, in: copyFolder, errors) { return true }
      return !isRemoved && Self.mayExist(backup, in: folder, errors)
    }

    /// The file system of a file whose folder is missing may be unmounted now.
    private static func mayExist(
      _ file: String, in folder: String, _ errors: [String: Int32]
    ) -> Bool {
      guard let code = errors[file], [ENOENT, ENOTDIR].contains(code) else { return true }
      return errors[folder] != 0
    }
  }
}
