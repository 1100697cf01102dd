import ArgumentParser
import InstarSchema
import InstarSupervisor

/// `instarctl backups verify`
struct BackupsVerifyCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Compare backups with their manifests, and check them with SQLite.",
    usage: "instarctl backups verify [<option> ...] [<store> ...]",
    discussion: """
        instarctl backups verify a.store

      Reads each backup: its size and content hash must be those of the manifest, and SQLite's quick_check \
      must find no damage. The exit status is 0 if all are sound, 3 if one is damaged, 5 if one is missing.
      """)

  @OptionGroup var selection: BackupOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let supervisor = try Supervisor(stateFolder: selection.state.forReading)
    let interruption = try Interruption { supervisor.cancel() }
    defer { withExtendedLifetime(interruption) {} }
    let (backups, missing) = try selection.backups(to: "verify")
    selection.noteIfEmpty(backups, missing, output)
    var status = ExitStatus(for: missing)
    try await supervisor.verify(backups.map(\.reference)) { result in
      let answer = BackupReport(result)
      if let error = answer.error { status = .gravest(status, ExitStatus(for: error)) }
      output.write(answer)
    }
    return status
  }
}
