import ArgumentParser
import Glibc
import InstarConfiguration
import InstarLinux
import InstarSchema
import InstarWire

/// The plugins that may contain the plan of a store: those that the user names, else those that instard uses.
struct PluginOptions: ParsableArguments {
  @Option(
    name: .customLong("plugin"),
    help: ArgumentHelp(
      "A plugin that may contain the store's plan. Repeat for several. (default: the plugins of instard)",
      valueName: "file.so"),
    completion: .file(extensions: ["so"]), transform: FilePath.typed)
  var files: [String] = []

  @Option(
    name: .customLong("plan"),
    help: ArgumentHelp(
      "Compare the store with the plan of this name only. Repeat for several.", valueName: "name"),
    completion: .plans)
  var plans: [String] = []

  @Option(
    help: ArgumentHelp(
      "The configuration that names the plugin folders of instard. (default: /etc/instar/instard.yml)",
      valueName: "file"),
    completion: .file(extensions: ["yml"]), transform: FilePath.typed)
  var config: String?

  /// Returns the plugins and the names of the plans.
  ///
  /// - Throws: `missingPlugin`, `missingFile`, `invalidConfiguration`.
  func selection() async throws(InstarError) -> PlanSelection {
    guard files.isEmpty else { return PlanSelection(plugins: try namedFiles(), names: plans) }
    var selection = PlanSelection(
      plugins: try await InstalledPlugins.usable(configuration: config), names: plans)
    if selection.plugins.isEmpty {
      selection.folders = try ServiceConfiguration.read(config).pluginFolders
    }
    return selection
  }

  /// The absolute paths of the plugins that the user named.
  ///
  /// The user chose them, so they are not refused. But root is warned of a plugin that others can change.
  private func namedFiles() throws(InstarError) -> [String] {
    var paths: [String] = []
    for file in files {
      let path = try FilePath.ofPlugin(file)
      if geteuid() == 0 {
        do throws(InstarError) {
          try PluginTrust(owners: [0]).require(path)
        } catch {
          Console.note("warning: \(error.cause); using the plugin anyway")
        }
      }
      paths.append(path)
    }
    return paths
  }
}
