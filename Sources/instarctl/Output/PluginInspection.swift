import InstarLinux
import InstarSchema
import InstarWire

/// The answer of `plugin inspect` and `plugin build`: the plugin's note, then its plans.
struct PluginInspection: Answer {
  var plugin: String
  var abi: UInt32
  var supportedABI = PluginNote.supportedABI
  var swiftVersion: String
  var planNames: [String]
  /// `nil` after a build, and if the plugin could not be loaded.
  var plans: [PlanManifest]?
  /// Whether it was built without optimization; only after a build.
  var debug: Bool?
  var error: InstarError?

  init(plugin: String, note: PluginNote) {
    self.plugin = plugin
    abi = note.abi
    swiftVersion = note.swiftVersion
    planNames = note.planNames
  }

  var lines: [ConsoleLine] {
    let names = planNames.isEmpty ? "no plan" : planNames.joined(separator: ", ")
    var lines: [ConsoleLine] = [
      "\(plugin)", "  \(names); plugin ABI \(abi), built with Swift \(swiftVersion)",
    ]
    for plan in plans ?? [] {
      lines += ["", "\(plan.name)"]
      var versions = Table(.left, .left, header: ["VERSION", "ENTITIES"])
      for version in plan.versions {
        let entities = version.schema.entities.map(\.name).joined(separator: ", ")
        versions.add("\(version.schema.version)", "\(entities)")
      }
      lines += versions.lines(indent: "  ")
      var stages = Table(.left, .left, header: ["STAGE", "KIND"])
      for stage in plan.stages {
        stages.add("\(stage.from) → \(stage.to)", "\(stage.kind.rawValue)")
      }
      lines += stages.lines(indent: "  ")
    }
    return lines
  }
}
