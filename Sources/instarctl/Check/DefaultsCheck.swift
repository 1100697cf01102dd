import Foundation
import InstarWire

/// Finds plugins that use the defaults of an app, which a run has not.
enum DefaultsCheck {
  /// What the names of all members of Foundation's `UserDefaults` begin with. A plugin imports those that it uses.
  private static let symbolPrefix = Data("$s10Foundation12UserDefaultsC".utf8)

  /// Returns a warning if the plugin at that path uses `UserDefaults`; none for a file that cannot be read.
  static func findings(on plugin: String) -> [Finding] {
    guard
      let content = try? Data(contentsOf: URL(fileURLWithPath: plugin), options: .mappedIfSafe),
      content.range(of: symbolPrefix) != nil
    else { return [] }
    return [
      Finding(
        severity: .warning,
        message: "the plugin uses UserDefaults: a run has none of the app's values, and what the "
          + "plan sets there is lost when the run ends",
        fix: "keep values of willMigrate for didMigrate in context.scratchpad, and values for the "
          + "app in the store; if the plan needs the app's values, let the app migrate its store")
    ]
  }
}
