import InstarLinux
import InstarSchema
import InstarWire

/// The answer of `plugin inspect`.
struct PluginInspection: Answer {
  var plugin: String
  var note: PluginNote
  /// `nil` where the plugin could not be loaded.
  var plans: [PlanManifest]?
  var error: InstarError?

  private enum CodingKeys: String, CodingKey {
    case plugin, abi, supportedABI, swiftVersion, planNames, plans, error
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(plugin, forKey: .plugin)
    try container.encode(note.abi, forKey: .abi)
    try container.encode(PluginNote.supportedABI, forKey: .supportedABI)
    try container.encode(note.swiftVersion, forKey: .swiftVersion)
    try container.encode(note.planNames, forKey: .planNames)
    try container.encodeIfPresent(plans, forKey: .plans)
    try container.encodeIfPresent(error, forKey: .error)
  }

  var lines: [ConsoleLine] {
    var lines: [ConsoleLine] = ["\(plugin)", "  \(note.line)"]
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

extension PluginNote {
  var line: ConsoleLine {
    let plans = planNames.isEmpty ? "no plan" : planNames.joined(separator: ", ")
    return "\(plans); plugin ABI \(abi), built with Swift \(swiftVersion)"
  }
}
