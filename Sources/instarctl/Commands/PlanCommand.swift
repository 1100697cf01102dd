import ArgumentParser
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire

/// `instarctl plan`
struct PlanCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "plan",
    abstract: "Show the stages and SQL of a migration without running it.",
    usage: "instarctl plan [<option> ...] <store> ...",
    discussion: """
        instarctl plan --plugin Notes.so a.store

      Lists the stages from the store's version to the last version of its plan, what each changes, \
      every SQL statement of that change, and the findings of the checks. A finding that is an error \
      refuses the migration; the exit status is then 3.
      """)

  @OptionGroup var stores: StoreArguments
  @OptionGroup var plugins: PluginOptions
  @OptionGroup var adoption: AdoptionOptions
  @OptionGroup var state: StateOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let supervisor = try Supervisor(stateFolder: state.forReading)
    state.noteUnreadableHolds()
    let status = StatusCollector()
    try await supervisor.plan(
      stores: stores.paths, plans: try await plugins.selection(), adopt: adoption.version
    ) { [output] report in
      status.note(ExitStatus(for: report))
      output.write(report)
    }
    return status.gravest
  }
}
