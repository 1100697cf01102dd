import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire

/// The answer of `plugin build`, `plugin inspect` and `plugin check`: the plugin's note, then its plans or findings.
struct PluginInspection: CommandOutput {
  var plugin: String
  var abi: UInt32
  var supportedABI = PluginNote.supportedABI
  var swiftVersion: String
  var planNames: [String]
  /// Only of `plugin inspect`; `nil` if the plugin could not be loaded.
  var plans: [PlanManifest]?
  /// Only of `plugin check`; `nil` if the plugin could not be loaded.
  var findings: [Finding]?
  /// Whether it was built without optimization; only after a build.
  var debug: Bool?
  var error: InstarError?

  init(plugin: String, note: PluginNote) {
    self.plugin = plugin
    abi = note.abi
    swiftVersion = note.swiftVersion
    planNames = note.planNames
  }

  /// Reads a plugin's note, then its plans, unless the plugin was built for another ABI or cannot be loaded.
  static func read(_ plugin: PluginArgument) async throws(InstarError) -> PluginInspection {
    let path = try FilePath.ofPlugin(plugin.file)
    let note = try PluginNote.read(path: path)
    var inspection = PluginInspection(plugin: path, note: note)
    do {
      try note.requireSupportedABI(path: path)
      inspection.plans = try await Supervisor().plans(of: path)
    } catch {
      inspection.error = error
    }
    return inspection
  }

  var lines: [ConsoleLine] {
    let names = planNames.isEmpty ? "no plan" : planNames.joined(separator: ", ")
    var lines: [ConsoleLine] = [
      "\(plugin)", "  \(names); plugin ABI \(abi), built with Swift \(swiftVersion)",
    ]
    if let findings {
      lines += findings.isEmpty ? ["  no problem found"] : findings.flatMap(\.lines)
    }
    for plan in plans ?? [] {
      lines += ["", "\(plan.name)"]
      var versions = Table(.left, .left, header: ["VERSION", "ENTITIES"])
      for version in plan.versions {
        let entities = version.schema.entities.map(\.name).joined(separator: ", ")
        versions.add("\(version.schema.version)", "\(entities)")
      }
      lines += versions.lines(indent: "  ")
      lines += PlanCheck(plan: plan, plugin: plugin).arrayFindings.flatMap(\.lines)
      lines += plan.invariants.map { "  invariant: \($0.name)" }
      if plan.stages.isEmpty { continue }
      var stages = Table(.left, .left, header: ["STAGE", "KIND"])
      for stage in plan.stages {
        stages.add(
          "\(stage.from) → \(stage.to)",
          "\(stage.kind.rawValue)\(stage.label.map { ", \($0)" } ?? "")\(stage.isImplicit ? ", added by Instar" : "")"
        )
      }
      lines += stages.lines(indent: "  ")
    }
    return lines
  }
}
