import ArgumentParser
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire

/// `instarctl probe`
struct ProbeCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "probe",
    abstract: "Says what a file is, without changing it.",
    discussion: """
      Shows format, version, entities with their rows, and, where a plugin's plan knows the store, \
      where it stands: current, behind, ahead, unversioned or unknown. Exits with 0 whatever the \
      file turns out to be; with 5 where there is none, and with 3 or 1 where nothing could be \
      found out about it: it may not be read, or its reader died.

      With --json, each store has one object, in the order of the arguments. store, format, state, \
      version and entities are always there; format and version are null where they are not known. \
      An object with "error" says why nothing was found out.
      """)

  @Argument(help: "The stores.", completion: .file(), transform: FilePath.typed)
  var stores: [String]

  @OptionGroup var plugins: PluginOptions

  @Flag(name: .customLong("rows"), inversion: .prefixedNo, help: "Count the rows of each entity.")
  var countsRows = true

  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let supervisor = Supervisor(installation: try .locate(), stateFolder: nil)
    let json = output.json
    let status = StatusCollector()
    try await supervisor.probe(
      stores: stores.map(FilePath.absolute), plugins: try plugins.paths(), countsRows: countsRows
    ) { report in
      if let error = report.error { status.note(ExitStatus(for: error)) }
      if json {
        JSONLine.write(report)
      } else if let error = report.error {
        Console.note(error.description)
      } else {
        Console.write(report.text)
      }
    }
    return status.gravest
  }
}
