import ArgumentParser
import InstarSchema
import InstarSupervisor
import InstarWire

/// `instarctl backups verify`
struct BackupsVerifyCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Compare backups with their manifests, and check them with SQLite.",
    usage: "instarctl backups verify [<option> ...] [<store> ...]",
    discussion: """
        instarctl backups verify a.store

      instarctl reads each backup: its size and content hash must be those of the manifest, and SQLite's quick_check \
      must find no damage. The results are in the order of the backups, oldest first. After several, a line on \
      standard error says how many are sound.

      The exit status is 0 if all are sound, 3 if one is damaged, 5 if one is missing.
      """)

  @OptionGroup var selection: BackupOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let (backups, missing) = try selection.backups(to: "verify")
    selection.noteIfEmpty(backups, missing, output)
    let supervisor = try Supervisor(stateFolder: selection.state.forReading)
    let interruption = try Interruption { supervisor.cancel() }
    defer { withExtendedLifetime(interruption) {} }
    var status = ExitStatus(for: missing)
    var summary = VerifiedBackupsReport()
    let ofStore = Dictionary(grouping: backups, by: \.reference.store)
    try await supervisor.verify(backups.map(\.reference)) { result in
      var answer = BackupReport(result)
      // The advice would be to run this same command.
      let advice = CommandText.findingBackup(of: answer.store)
      if answer.error?.next?.hasPrefix(advice) == true {
        answer.error?.next = next(result.backup, among: ofStore[answer.store] ?? [])
      }
      if let error = answer.error { status = .gravest(status, ExitStatus(for: error)) }
      summary.add(answer)
      output.write(answer)
    }
    if backups.count > 1, !output.json { Console.note(summary.line) }
    return status
  }

  /// What to do about a backup that cannot be used.
  ///
  /// - Parameter all: The backups of its store.
  private func next(_ backup: BackupReference, among all: [ListedBackup]) -> String {
    let store = CommandText.quoted(backup.store)
    let listed = all.first { $0.reference.run == backup.run }
    // With the number of all, prune removes no other backup.
    func prune(_ option: String = "") -> String {
      "if somebody deleted the backup on purpose, run: "
        + "instarctl backups prune \(option)--keep \(all.count) \(store)"
    }
    let text: String
    if listed?.isDeleted == true {
      text = prune()
    } else if listed?.isMissing == true {
      text =
        "if its disk is not mounted, mount it; \(prune("--missing ")); "
        + "if the store was moved, run with its new path: instarctl backups verify STORE"
    } else {
      text = "to see the other backups of the store, run: instarctl backups list \(store)"
    }
    return selection.state.forReading.completing(text, store: backup.store)
  }
}
