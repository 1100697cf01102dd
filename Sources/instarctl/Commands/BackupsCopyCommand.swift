import ArgumentParser
import InstarSchema
import InstarSupervisor
import InstarWire

/// `instarctl backups copy`
struct BackupsCopyCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "copy",
    abstract: "Copy backups that have no copy yet to another folder.",
    usage: "instarctl backups copy [<option> ...] [<store> ...]",
    discussion: """
        instarctl backups copy a.store
        instarctl backups copy --backup-folder /mnt/backups a.store

      instarctl copies each sound backup that has no copy yet, then reads the copy and compares it with the backup's \
      manifest. Without --backup-folder, it copies each backup to the folder that its run used (--backup-folder or \
      'backupFolder'), and skips the backups of runs that used none. instard does this at each check of backups \
      (setting 'checkBackups') for its setting 'backupFolder'.
      """)

  @OptionGroup var selection: BackupOptions
  @OptionGroup var copies: BackupFolderOptions

  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let (backups, missing) = try selection.backups(to: "copy")
    selection.noteIfEmpty(backups, missing, output)
    let supervisor = try Supervisor(stateFolder: try selection.state.open())
    let interruption = try Interruption { supervisor.cancel() }
    defer { withExtendedLifetime(interruption) {} }
    let folder = copies.folder
    var status = ExitStatus(for: missing)
    var isIdle = true
    try await supervisor.makeCopies(of: backups, in: { _ in folder }) { result in
      isIdle = false
      let answer = BackupReport(result)
      if let error = answer.error { status = .gravest(status, ExitStatus(for: error)) }
      output.write(answer)
    }
    if isIdle, !backups.isEmpty, !output.json {
      let rest = folder == nil && backups.contains { $0.copyTo == nil && $0.copyBytes == nil }
      Console.note(
        rest
          ? "nothing to do; some runs were given no folder for copies: to copy their backups, add --backup-folder FOLDER"
          : "nothing to do: no backup lacks its copy")
    }
    return status
  }
}
