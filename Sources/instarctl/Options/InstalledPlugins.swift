import Glibc
import InstarConfiguration
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire

/// The plugins in the plugin folders of instard.
enum InstalledPlugins {
  /// Returns the plugins that can be used, in the order of the folders and of their names. Warns of the others.
  ///
  /// - Parameter file: The configuration; `nil` for that of the service, which need not exist.
  /// - Throws: `missingFile`, `invalidConfiguration`, or why no plugin can be described.
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
    let configuration = try ServiceConfiguration.read(file)
    let plugins = try paths(configuration)
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
    let supervisor = try Supervisor()
    let keys =
      configuration.requiresSignature
      ? TrustedKeys.ofThisDaemon(in: configuration.trustedKeysFolder) : nil
    supervisor.requireSignatures(by: keys?.keys)
    for description in try await supervisor.describe(plugins: trusted) {
      let result = description.result.mapError { keys?.explaining($0) ?? $0 }
      descriptions[description.plugin] = (description.plugin, result)
    }
    return plugins.compactMap { descriptions[$0] }
  }

  /// Returns the names of the plans of all plugins in the folders, as their notes say: no plugin is loaded.
  ///
  /// - Returns: `nil` where there is no plugin, or the note of one cannot be read.
  static func planNames(_ configuration: Configuration) -> [String]? {
    guard let paths = try? paths(configuration), !paths.isEmpty else { return nil }
    let notes = paths.map { try? PluginNote.read(path: $0) }
    return notes.contains(nil) ? nil : notes.flatMap { $0?.planNames ?? [] }
  }

  private static func paths(_ configuration: Configuration) throws(InstarError) -> [String] {
    var paths: [String] = []
    for folder in configuration.pluginFolders where FilePath.exists(folder) {
      paths += try FolderNames.all(in: folder, suffix: ".so").filter { !$0.hasPrefix(".") }.sorted()
        .map { "\(folder)/\($0)" }
    }
    return paths
  }
}
