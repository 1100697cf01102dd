import ArgumentParser
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire

/// `instarctl probe`
struct ProbeCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "probe",
    abstract: "Report a store's format, version and state without changing it.",
    usage: "instarctl probe [<option> ...] <store> ...",
    discussion: """
        instarctl probe a.store

      Shows format, version, size, journal, the processes that have the store open, and the rows of \
      each entity. Also shows the state. With the store's plugin: current, behind, ahead or unversioned. \
      Without one: unknown. In any case: not a store, corrupt, encrypted, unreadable or busy. For a store that \
      matches no version of a plan, it shows the nearest version and the \
      differences.

      probe never writes, even while another process writes the store. It counts the rows where that \
      is quick; --rows counts all, --no-rows none.

      Reports are printed in the order of the stores. The exit status for a store:

        0   read, whatever its state is
        1   the keeper, the process that reads stores, crashed
        3   unreadable
        4   busy: another process has the store locked
        5   missing
      """)

  @OptionGroup var stores: StoreArguments
  @OptionGroup var plugins: PluginOptions

  @Flag(
    name: .customLong("rows"), inversion: .prefixedNo,
    help: "Count the rows of all entities, or of none.")
  var countsRows: Bool?

  @OptionGroup var state: StateOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let supervisor = try Supervisor(stateFolder: state.forReading)
    state.noteUnreadableHolds()
    let status = StatusCollector()
    let rows: RowCounting = countsRows.map { $0 ? .all : .none } ?? .quick
    try await supervisor.probe(
      stores: stores.paths, plans: try await plugins.selection(), rows: rows, findsHolders: true
    ) { [output] (report) throws(InstarError) in
      if let code = report.errorCode { status.note(ExitStatus(for: code)) }
      if report.state == .busy { status.note(.busy) }
      if output.json { return output.prepared(json: report.text) }
      return output.prepared(try report.report())
    }
    return status.gravest
  }
}
