public import InstarSchema
public import InstarWire

/// Copies of backups in another folder, which are made after the run: no store waits for them.
///
/// The phase record and then the ledger say where the copy of a run goes. So after a crash between cutover and copy it
/// is made by whoever recovers the run, or by the daemon's regular check.
extension Supervisor {
  /// Makes the copies that backups are to have and do not have, one after the other. Each was read back and is recorded
  /// in the ledger when its result is reported.
  ///
  /// Leaves out backups of damaged stores, those whose file beside the store is gone, and those that are not trusted
  /// (`isTrusted`).
  ///
  /// - Parameter folder: The folder for the copies of a store's backups; where it is `nil`, that which the backup's run
  ///   was given.
  /// - Throws: `interrupted`, `stateFolderFailed`. Why a copy could not be made is its result.
  public func makeCopies(
    of backups: [ListedBackup], in folder: (_ store: String) -> BackupFolder? = { _ in nil },
    onResult: (BackupResult) -> Void
  ) async throws(InstarError) {
    for backup in backups where backup.isWithoutCopy && isTrusted(backup.reference) {
      let reference = backup.reference
      guard let folder = folder(reference.store) ?? backup.copyTo else { continue }
      do throws(InstarError) {
        let copy = try await makeCopy(of: reference, in: folder)
        onResult(BackupResult(backup: reference, outcome: .copied(copy)))
      } catch {
        guard error.code != .interrupted, error.code != .stateFolderFailed else { throw error }
        onResult(BackupResult(backup: reference, outcome: .notCopied(error)))
      }
    }
  }

  /// Makes the copy of the backup of a run that has ended, if there is to be one.
  ///
  /// - Returns: The report with the path of the copy, or with a note why there is none.
  public func addingCopy(to report: RunReport) async -> RunReport {
    guard let folder = report.copyTo, let backup = report.backup else { return report }
    var report = report
    let reference = BackupReference(
      run: report.run, store: report.store, path: backup, manifest: report.manifest)
    do throws(InstarError) {
      report.backupCopy = try await makeCopy(of: reference, in: folder).path
    } catch {
      let command = "instarctl backups copy \(CommandText.quoted(report.store))"
      report.notes.append(
        "the backup has no copy in '\(folder.path)': \(error.cause); to make it, run: "
          + (stateFolder?.completing(command, store: report.store) ?? command))
    }
    return report
  }

  private func makeCopy(
    of backup: BackupReference, in folder: BackupFolder
  ) async throws(InstarError) -> BackupCopy {
    do throws(InstarError) {
      let path = folder.copy(ofBackup: backup.path)
      guard let copy = try await handle(backup, .keepCopy(at: path)), copy.path == path else {
        throw unexpectedEvent()
      }
      try stateFolder?.noteCopy(copy, of: backup)
      return copy
    } catch {
      throw stateFolder?.completing(error) ?? error
    }
  }
}
