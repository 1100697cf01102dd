import ArgumentParser
import InstarSchema
import InstarSupervisor

/// `instarctl backups list`
struct BackupsListCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "List backups, oldest first.",
    usage: "instarctl backups list [<option> ...] [<store> ...]",
    discussion: """
        instarctl backups list a.store

      The state of a backup:

        present      its file is there; 'instarctl backups verify' checks it
        missing      its file is gone, and its copy if it has one;
                     'backups prune' can remove it from the list
        copyOnly     only its copy in another folder is left, which
                     'instarctl restore' uses
        damaged      the store was damaged when the backup was made
        unreadable   you have no permission to read its folder
      """)

  @OptionGroup var selection: BackupOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let (backups, missing) = try selection.backups(to: "list")
    selection.noteIfEmpty(backups, missing, output)
    let errors = backups.compactMap(\.error)
    if output.json {
      for backup in backups { output.write(BackupReport(backup)) }
    } else if !backups.isEmpty {
      Console.write(BackupReport.table(of: backups))
      for error in errors { Console.note(error) }
    }
    return ExitStatus(for: missing + errors)
  }
}
