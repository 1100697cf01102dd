import ArgumentParser
import Foundation
import InstarSchema
import InstarSupervisor
import InstarWire

/// `instarctl backups prune`
struct BackupsPruneCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "prune",
    abstract: "Remove old backups, but never the last good one of a store.",
    usage: "instarctl backups prune [<option> ...] [<store> ...]",
    discussion: """
        instarctl backups prune --dry-run --keep 3
        instarctl backups prune --keep 3 --age 720h a.store

      prune always keeps the newest backup of each store. It keeps an older backup only if all limits allow it: \
      --keep, --age, --size and --total-size. Before prune removes a backup, it verifies that another backup of the \
      store is sound. With a backup, prune removes its copy in another folder. If the copy's disk is not mounted, the copy \
      stays, and 'backups list' shows it once the disk is mounted again. If the stores have several owners, --total-size \
      removes backups only of owners who use more than an equal share of that size. instard removes backups by the \
      limits in the setting 'backups' of instard.yml.

      A backup that somebody deleted is listed as missing until prune removes it from the list. If its folder is gone \
      too, or if the backup has a copy and that is missing too, a disk may not be mounted: the backup stays in the list \
      until prune is run with --missing.
      """)

  @OptionGroup var selection: BackupOptions

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "Keep at most this many backups of each store. (default: 10)", valueName: "number"),
    transform: { text in
      guard let number = Int(text), number >= 1 else {
        throw ValidationError("'\(text)' is not a number from 1")
      }
      return number
    })
  var keep = BackupRetention().count

  @Option(
    help: ArgumentHelp("Remove older backups, from 1h to 8784h.", valueName: "duration"),
    transform: { try DurationArgument($0, in: .seconds(3600)...(.seconds(8784 * 3600))) })
  var age: DurationArgument?

  @Option(
    help: ArgumentHelp("Keep at most this size of backups of each store.", valueName: "size"),
    transform: bytes)
  var size: Int64?

  @Option(
    help: ArgumentHelp(
      "Keep at most this size of backups of all these stores together.", valueName: "size"),
    transform: bytes)
  var totalSize: Int64?

  @Flag(
    name: .customLong("missing"),
    help: "Forget all backups whose file and copy are missing, even if a disk may not be mounted.")
  var forgetMissing = false

  @Flag(help: "Show what would be removed, and remove nothing.")
  var dryRun = false

  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let (backups, missing) = try selection.backups(to: "prune")
    selection.noteIfEmpty(backups, missing, output)
    let supervisor = try Supervisor(stateFolder: try selection.state.open())
    let interruption = try Interruption { supervisor.cancel() }
    defer { withExtendedLifetime(interruption) {} }
    var status = ExitStatus(for: missing)
    func show(_ result: BackupResult) {
      let answer = BackupReport(result)
      if let error = answer.error { status = .gravest(status, ExitStatus(for: error)) }
      output.write(answer)
    }
    try await supervisor.forgetDeleted(
      backups, orMissing: forgetMissing, isDryRun: dryRun, onResult: show)
    try await supervisor.prune(
      backups,
      keeping: BackupRetention(
        count: keep, age: age?.duration, bytes: size, totalBytes: totalSize),
      now: Date().timeIntervalSince1970, isDryRun: dryRun, onResult: show)
    return status
  }

  private static func bytes(_ text: String) throws -> Int64 {
    guard let bytes = SizeText.parse(text) else {
      throw ValidationError("'\(text)' is not a size such as 512MiB or 4GiB")
    }
    return bytes
  }
}
