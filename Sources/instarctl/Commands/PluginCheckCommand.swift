import ArgumentParser
import InstarSchema
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
      versions without a stage, versions that have the same structure, and models that a version does \
      not list. No store is needed; 'instarctl plan' checks one store.

      The exit status is 0 with warnings and notes, and 3 with errors.
      """)

  @OptionGroup var plugin: PluginArgument
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    var inspection = try await PluginInspection.read(plugin)
    let path = inspection.plugin
    inspection.findings = inspection.plans?.flatMap { PlanCheck(plan: $0, plugin: path).findings }
    inspection.plans = nil
    output.write(inspection)
    if let error = inspection.error { return ExitStatus(for: error) }
    return inspection.findings?.contains { $0.severity == .error } == true ? .refused : .done
  }
}
