import ArgumentParser
import InstarSchema
import InstarSupervisor
import InstarWire

/// `instarctl verify`
struct VerifyCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Check whether stores are sound, without changing them.",
    usage: "instarctl verify [<option> ...] <store> ...",
    discussion: """
        instarctl verify /srv/app/*.store

      Checks what a migration with --verify full checks of a store before it begins: SQLite's quick_check \
      and integrity_check, each index against its table, CHECK constraints, stored generated columns, and \
      foreign keys. If a plugin has the version that the store declares, verify also checks whether the store \
      has the structure of that version, whether a link references a missing row, and whether each required \
      property has a value.

      verify never writes, and leaves no file beside the store. Apps can read the store meanwhile. They can \
      write it too if it has a write-ahead log (journal_mode WAL); else their writes wait, which takes \
      seconds for each gigabyte.

      It prints one line for each sound store, and for every other store one error for each failed check. The \
      exit status for a store:

        0   sound
        1   the keeper, the process that reads stores, crashed
        3   damaged, or refused by a check
        4   busy: another process has the store locked
        5   missing
      """)

  @OptionGroup var stores: StoreArguments
  @OptionGroup var plugins: PluginOptions
  @OptionGroup var busy: BusyOptions
  @OptionGroup var state: StateOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let supervisor = try Supervisor(stateFolder: state.forReading)
    let interruption = try Interruption { supervisor.cancel() }
    defer { withExtendedLifetime(interruption) {} }
    let status = StatusCollector()
    let waits = LockWatch(ProgressLine())
    let paths = stores.paths
    for path in paths { waits.begin(path, .reads) }
    try await supervisor.verify(
      stores: paths, plans: try await plugins.selection(),
      busyTimeout: busy.busyTimeout.duration
    ) { [output] report in
      waits.end(report.store)
      status.note(ExitStatus(for: report))
      output.write(report)
    }
    return status.gravest
  }
}
