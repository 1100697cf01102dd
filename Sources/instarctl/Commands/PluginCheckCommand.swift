import ArgumentParser
import InstarSchema
import InstarSupervisor
import InstarWire

/// `instarctl plugin check`
struct PluginCheckCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Check the plans of a plugin for mistakes.",
    discussion: """
        instarctl plugin check Notes.so

      Loads the plugin in a confined worker, as 'plugin inspect' does, and reports what its plans lose, \
      leave out or leave to Instar: values and rows that a stage removes, stages that cannot run, \
      versions without a stage, versions that have the same structure, models that a version does \
      not list, and the use of UserDefaults, which a run does not have. No store is needed; 'instarctl plan' checks one store.

      With --schemas it also compares the plans with the files that 'schema export' wrote when a version \
      was released, and reports plans and versions that were changed or removed since. With --store it \
      rehearses the plan on clones of stores, as 'instarctl rehearse' does, and reports closures that \
      fetch all rows of a model at once, where 'enumerate' reads them in batches. The stores are not \
      changed.

      The exit status is 0 with warnings and notes, and 3 with errors.
      """)

  @OptionGroup var plugin: PluginArgument
  @Option(
    help: ArgumentHelp(
      "Compare the plan with the released versions in this folder, which 'schema export' wrote.",
      valueName: "folder"),
    completion: .directory, transform: FilePath.typed)
  var schemas: String?

  @Option(
    name: .customLong("store"),
    help: ArgumentHelp(
      "Rehearse the plan on a clone of this store; may be given several times.", valueName: "store"),
    completion: .file(), transform: FilePath.typed)
  var stores: [String] = []

  @OptionGroup var state: StateOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let released = try schemas.map { folder throws(InstarError) in
      try SchemaReader.documents(in: FilePath.ofFolder(folder, to: "read the schemas in"))
    }
    for store in stores { try FilePath.requireStore(FilePath.ofStore(store), to: "rehearse") }
    var inspection = try await PluginInspection.read(plugin)
    let path = inspection.plugin
    inspection.findings = inspection.plans.map { plans in
      plans.flatMap { PlanCheck(plan: $0, plugin: path, released: released ?? []).findings }
        + PlanCheck.findings(onReleased: released ?? [], without: plans)
        + DefaultsCheck.findings(on: path)
    }
    if inspection.findings != nil { inspection.findings? += try await rehearse(path) }
    inspection.plans = nil
    output.write(inspection)
    if let error = inspection.error { return ExitStatus(for: error) }
    return inspection.findings?.contains { $0.severity == .error } == true ? .refused : .done
  }

  /// Runs the plan on clones of the stores, and returns what is wrong with those that cannot be migrated.
  private func rehearse(_ plugin: String) async throws(InstarError) -> [Finding] {
    guard !stores.isEmpty else { return [] }
    let runs = try StoreRuns(state: state, shows: .output)
    let requests = stores.map { store in
      var request = MigrationRequest(
        run: RunIdentifier.make(), store: FilePath.ofStore(store), plans: [plugin])
      request.rehearses = true
      return request
    }
    var findings: [Finding] = []
    try await runs.perform(requests) { (_, result) throws(InstarError) in
      let report = try result.get()
      findings += (report.rehearsal?.wholeFetches ?? []).map { fetch in
        Finding(
          severity: fetch.rows > WholeFetch.batchSize ? .warning : .note, code: nil,
          message: "\(report.plan.map { "\($0): " } ?? "")\(fetch.sentence), in '\(report.store)': "
            + "its memory grows with the rows", fix: fetch.advice)
      }
      switch (report.result, report.error) {
      case (_, let error?):
        findings.append(
          Finding(
            severity: .error, code: error.code,
            message: "'\(report.store)' cannot be migrated: \(error.cause)", fix: error.next))
      case (.current, nil):
        findings.append(
          Finding(
            severity: .note, code: nil,
            message: "'\(report.store)' is at the last version: nothing was rehearsed"))
      case (_, nil): break
      }
    }
    return findings
  }
}
