import ArgumentParser
import Glibc
import InstarLinux
import InstarSchema

/// The plugins that may contain the plan of a store.
struct PluginOptions: ParsableArguments {
  @Option(
    name: .customLong("plugin"),
    help: ArgumentHelp(
      "A plugin that may contain the store's plan. Repeat for several.",
      valueName: "file.so"),
    completion: .file(extensions: ["so"]), transform: FilePath.typed)
  var files: [String] = []

  /// Returns the absolute paths of the plugins.
  ///
  /// The caller chose them, so they are not refused. But root is warned of a plugin that others can change.
  ///
  /// - Throws: `missingPlugin`.
  func paths() throws(InstarError) -> [String] {
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
