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
      file turns out to be, and with 5 where there is none.
      """)

  @Argument(help: "The stores.", completion: .file())
  var stores: [String]

  @OptionGroup var plugins: PluginOptions

  @Flag(name: .customLong("rows"), inversion: .prefixedNo, help: "Count the rows of each entity.")
  var countsRows = true

  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let supervisor = Supervisor(installation: try .locate(), stateFolder: nil)
    let plugins = try plugins.paths()
    var present: [String] = []
    var status = ExitStatus.done
    for store in stores.map(FilePath.absolute) {
      if FilePath.exists(store) {
        present.append(store)
      } else {
        status = .notFound
        output.report(
          InstarError(
            .missingStore, "cannot probe '\(store)'", store: store,
            cause: "there is no such file"))
      }
    }
    guard !present.isEmpty else { return status }
    let json = output.json
    try await supervisor.probe(stores: present, plugins: plugins, countsRows: countsRows) {
      json ? JSONLine.write($0) : Console.write($0.text)
    }
    return status
  }
}
