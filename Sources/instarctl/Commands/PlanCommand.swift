import ArgumentParser
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire

/// `instarctl plan`
struct PlanCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "plan",
    abstract: "Shows what a migration would do, without doing it.",
    discussion: """
      Shows the stages from the store's version to the plan's last one, every SQL statement of \
      their changes of schema, and what the checks find.
      """)

  @Argument(help: "The stores.", completion: .file(), transform: FilePath.typed)
  var stores: [String]

  @OptionGroup var plugins: PluginOptions
  @OptionGroup var adoption: AdoptionOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let supervisor = Supervisor(
      installation: try .locate(), stateFolder: nil, rights: .ofCommandLine)
    let status = StatusCollector()
    try await supervisor.plan(
      stores: stores.map(FilePath.absolute), plugins: try plugins.paths(), adopt: adoption.version
    ) { [output] report in
      status.note(ExitStatus(for: report))
      output.write(report)
    }
    return status.gravest
  }
}
