import ArgumentParser
import Glibc
import InstarConfiguration
import InstarLinux
import InstarSchema
import InstarSupervisor
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
      "Compare the store with the plan of this name only. Repeat for several.", valueName: "name"))
  var plans: [String] = []

  @Option(
    help: ArgumentHelp(
      "The configuration that names the plugin folders of instard. (default: /etc/instar/instard.yml)",
      valueName: "file"),
    completion: .file(extensions: ["yml"]), transform: FilePath.typed)
  var config: String?

  /// Returns the plugins and the names of the plans.
  ///
  /// - Throws: `missingPlugin`, `invalidConfiguration`.
  func selection() async throws(InstarError) -> PlanSelection {
    PlanSelection(
      plugins: files.isEmpty
        ? try await InstalledPlugins.usable(configuration: config) : try namedFiles(),
      names: plans)
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

/// The plugins in the plugin folders of instard.
enum InstalledPlugins {
  /// Returns the plugins that can be used, in the order of the folders and of their names. Warns of the others.
  ///
  /// - Parameter file: The configuration; `nil` for that of the service, which need not exist.
  /// - Throws: `invalidConfiguration`, or why no plugin can be described.
  static func usable(configuration file: String?) async throws(InstarError) -> [String] {
    var usable: [String] = []
    for (plugin, result) in try await described(configuration: file) {
      switch result {
      case .success: usable.append(plugin)
      case .failure(let error):
        Console.note("warning: \(error.what): \(error.cause); leaving the plugin out")
      }
    }
    return usable
  }

  /// Returns each plugin with its manifest, or the reason why instard refuses it.
  ///
  /// - Throws: as `usable`.
  static func described(
    configuration file: String?
  ) async throws(InstarError) -> [PluginDescription] {
    let plugins = try paths(configuration: file)
    var descriptions: [String: PluginDescription] = [:]
    var trusted: [String] = []
    for plugin in plugins {
      do throws(InstarError) {
        try PluginTrust(owners: [0, geteuid()]).require(plugin)
        trusted.append(plugin)
      } catch {
        descriptions[plugin] = (plugin, .failure(error))
      }
    }
    for description in try await Supervisor().describe(plugins: trusted) {
      descriptions[description.plugin] = description
    }
    return plugins.compactMap { descriptions[$0] }
  }

  private static func paths(configuration file: String?) throws(InstarError) -> [String] {
    let service = "/etc/instar/instard.yml"
    var configuration = Configuration()
    if let file = file.map(FilePath.absolute) ?? (FilePath.exists(service) ? service : nil) {
      configuration = try Configuration.read(path: file)
    }
    var paths: [String] = []
    for folder in configuration.pluginFolders where FilePath.exists(folder) {
      paths += try FolderNames.all(in: folder, suffix: ".so").filter { !$0.hasPrefix(".") }.sorted()
        .map { "\(folder)/\($0)" }
    }
    return paths
  }
}
