import InstarChange
import InstarModel
import InstarSchema
import InstarStore
import InstarWire

extension StageWork {
  var kind: StageManifest.Kind {
    switch self {
    case .lightweight: .lightweight
    case .custom: .custom
    case .sql: .sql
    case .transform: .transform
    case .bridge: .bridge
    }
  }

  var isBridge: Bool { kind == .bridge }

  /// The properties that transforms compute, by their names in the later version: "Note.words".
  var computedProperties: [String] {
    guard case .transform(let transforms) = self else { return [] }
    return transforms.flatMap { transform in
      transform.assignments.compactMap(\.target).map { "\(transform.new).\($0)" }
    }
  }

  /// Returns what runs with the change of schema.
  ///
  /// - Parameters:
  ///   - versionSource: Where the plan keeps the version of a store.
  ///   - beforeWrite: Called before each row that the plan's code writes; an error that it throws fails that write.
  func code(
    _ versionSource: VersionSource, beforeWrite: (@Sendable () throws -> Void)?
  ) -> StageCode {
    var code = StageCode()
    code.versionTable = versionSource.tableName
    code.beforeWrite = beforeWrite
    switch self {
    case .lightweight, .custom, .bridge: break
    case .sql(let before, let after):
      code.before = before.map { PlanStatement($0.text, $0.arguments) }
      code.after = after.map { PlanStatement($0.text, $0.arguments) }
    case .transform(let transforms):
      code.transforms = transforms.map { Self.transform($0, beforeWrite: beforeWrite) }
    }
    return code
  }

  private static func transform(
    _ transform: ModelTransform, beforeWrite: (@Sendable () throws -> Void)?
  ) -> EntityTransform {
    var assignments = transform.assignments.map {
      EntityTransform.Assignment(target: $0.target, sources: $0.sources, function: $0.function)
    }
    // Each row calls all functions of its transform: the first one counts it.
    if let beforeWrite, let first = assignments.first {
      assignments[0] = EntityTransform.Assignment(target: first.target, sources: first.sources) {
        try beforeWrite()
        try first.function($0, $1)
      }
    }
    return EntityTransform(old: transform.old, new: transform.new, assignments: assignments)
  }
}
