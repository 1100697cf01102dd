import InstarSchema

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

extension PlanSelection {
  /// Says that no plan has a name, and which one was probably meant.
  ///
  /// - Parameters:
  ///   - searched: What could have had a plan of this name.
  ///   - known: The names of the plans that there are.
  package static func reason(
    forMissing name: String, in searched: String = "plugin", known: some Sequence<String>
  ) -> String {
    let hint = Suggestion.nearest(to: name, among: Set(known).sorted())
      .map { "; did you mean '\($0)'?" }
    return "no \(searched) has a plan named '\(name)'\(hint ?? "")"
  }
}

extension PlanSelection: ExpressibleByArrayLiteral {
  /// All plans of some plugins.
  public init(arrayLiteral plugins: String...) { self.init(plugins: plugins) }
}
