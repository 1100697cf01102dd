import InstarSchema

/// The plans that a store is compared with.
public struct PlanSelection: Sendable, Codable, Hashable {
  /// The paths of the plugins whose plans they are.
  public var plugins: [String]
  /// The names of the plans; empty for all plans of the plugins.
  public var names: [String]
  /// The folders that were searched for the plugins; left out if a user named the plugins.
  public var folders: [String]?

  /// The plans of these names, or all plans, of some plugins.
  public init(plugins: [String], names: [String] = []) {
    self.plugins = plugins
    self.names = names
  }

  /// Whether a plan of that name is one of them.
  public func includes(_ name: String) -> Bool { names.isEmpty || names.contains(name) }

  /// Why none of the plugins has any of the plans; `nil` if no plan is named.
  public var reasonForNone: String? {
    guard !names.isEmpty else { return nil }
    let plans = names.map { "'\($0)'" }.joined(separator: " or ")
    // The plugins are those that can be used: another one may be refused.
    return "no usable plugin has a plan named \(plans)"
  }

  /// Why a probe compares a store with no plan, and what to run; `nil` if a user named plugins, or one is installed.
  package func reasonForNoPlugin(ofProbeOf store: String) -> String? {
    guard plugins.isEmpty, let folders, !folders.isEmpty else { return nil }
    let places = folders.map { "'\($0)'" }.joined(separator: " or ")
    return "no plugin was given, and no usable one is in \(places); "
      + "run: instarctl probe --plugin FILE.so \(CommandText.quoted(store))"
  }
}

extension PlanSelection {
  /// Says that no plan has a name, and which one was probably meant, or where it may be.
  ///
  /// - Parameters:
  ///   - searched: What could have had a plan of this name.
  ///   - known: The names of the plans that there are.
  ///   - refused: The plugins that instard refused. Nobody knows their plans.
  package static func reason(
    forMissing name: String, in searched: String = "plugin", known: some Sequence<String>,
    refused: [String] = []
  ) -> String {
    let hint = Suggestion.nearest(to: name, among: Set(known).sorted())
      .map { "; did you mean '\($0)'?" }
    let missing = "\(searched) has a plan named '\(name)'\(hint ?? "")"
    guard let first = refused.first else { return "no \(missing)" }
    let more = refused.count > 1 ? " and \(refused.count - 1) more" : ""
    return "no usable \(missing); instard refused the plugin '\(first)'\(more), which may have it"
  }
}

extension PlanSelection: ExpressibleByArrayLiteral {
  /// All plans of some plugins.
  public init(arrayLiteral plugins: String...) { self.init(plugins: plugins) }
}
