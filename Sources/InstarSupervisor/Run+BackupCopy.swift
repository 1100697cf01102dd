import InstarSchema
import InstarWire

extension Run {
  /// Copies the backup of a migration to the folder that the operator chose, as the store's owner.
  ///
  /// After the cutover, so that no app waits for it: the backup beside the store is there since before. A copy that
  /// fails is a note of the report.
  func copyBackup(_ report: inout RunReport) {
    guard let folder = backupFolder, report.result == .migrated, let backup = report.backup else {
      return
    }
    let name = backup.split(separator: "/").last.map(String.init) ?? report.run
    let target = "\(folder)/\(name)"
    let reference = BackupReference(
      run: report.run, store: report.store, path: backup, manifest: report.manifest)
    do throws(InstarError) {
      if conversation.isCancelWanted { throw interrupted() }
      try copy(reference, to: target)
      report.backupCopy = target
    } catch {
      report.notes.append("the backup has no copy in '\(folder)': \(error.cause)")
    }
  }

  private func copy(_ reference: BackupReference, to target: String) throws(InstarError) {
    let identity = try recovery.access.identity(forCopyOf: reference.store, to: target)
    let session = try keepers.take(as: identity)
    do throws(InstarError) {
      try session.send(.backup(reference, .copy(to: target)))
      let limit = Self.stepLimit + Supervisor.timeToReadAll(of: reference.path) * 3
      switch try session.next(deadline: .now + limit) {
      case .done: keepers.giveBack(session)
      case .failed(let error): throw error
      case nil: throw Supervisor.overdue(limit)
      default: throw unexpectedEvent()
      }
    } catch {
      session.kill()
      throw error
    }
  }
}
