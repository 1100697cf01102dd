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
      Shows format, version, size, journal, the processes that have the store open, entities with \
      their rows, and, where a plugin's plan knows the store, where it stands: current, behind, \
      ahead, unversioned or unknown. For a store that no version of a plan fits, the nearest version \
      and what differs from it are shown. Not a byte is written, also beside processes that write \
      the store and where a log or a journal was left behind.

      Rows are counted as long as that takes little. --rows counts all, --no-rows none.

      Each report is written as soon as it is known. Exits with 0 whatever the file turns out to be; \
      of several problems the gravest counts: 1 where the reader died, 3 where nothing could be \
      found out because the file may not be read, 5 where there is none, 4 where another process \
      would not let go of it.

      With --json, each store has one object, in the order of the arguments. store, format, state, \
      version and entities are always there; format and version are null where they are not known, \
      and an entity has no rows where they were not counted. An object with "error" says why nothing \
      was found out.
      """)

  @Argument(help: "The stores.", completion: .file(), transform: FilePath.typed)
  var stores: [String]

  @OptionGroup var plugins: PluginOptions

  @Flag(
    name: .customLong("rows"), inversion: .prefixedNo,
    help: "Count the rows of every entity, or of none.")
  var countsRows: Bool?

  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let supervisor = Supervisor(
      installation: try .locate(), stateFolder: nil, rights: .ofCommandLine)
    let status = StatusCollector()
    let rows: RowCounting = countsRows.map { $0 ? .all : .none } ?? .quick
    try await supervisor.probe(
      stores: stores.map(FilePath.absolute), plugins: try plugins.paths(), rows: rows
    ) { [output] report in
      if let error = report.error { status.note(ExitStatus(for: error)) }
      if report.state == .busy { status.note(.busy) }
      output.write(report)
    }
    return status.gravest
  }
}
