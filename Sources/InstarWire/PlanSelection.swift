/// The plans that a store is compared with.
public struct PlanSelection: Sendable, Codable, Hashable {
  /// The paths of the plugins whose plans they are.
  public var plugins: [String]
  /// The names of the plans; empty for all plans of the plugins.
  public var names: [String]

  /// The plans of these names, or all plans, of some plugins.
  public init(plugins: [String], names: [String] = []) {
    self.plugins = plugins
    self.names = names
  }

  /// Whether a plan of that name is one of them.
  public func includes(_ name: String) -> Bool { names.isEmpty || names.contains(name) }

  /// Why no plugin has any of the plans; `nil` if no plan is named.
  public var reasonForNone: String? {
    guard !names.isEmpty else { return nil }
    let plans = names.map { "'\($0)'" }.joined(separator: " or ")
    return "no plugin has a plan named \(plans)"
  }
}

extension PlanSelection: ExpressibleByArrayLiteral {
  /// All plans of some plugins.
  public init(arrayLiteral plugins: String...) { self.init(plugins: plugins) }
}
