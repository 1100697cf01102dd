import ArgumentParser
import InstarSchema
import InstarSupervisor
import InstarWire

/// `instarctl plugin list`
struct PluginListCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "List the plugins that instard uses.",
    discussion: """
        instarctl plugin list

      Reads the plugin folders of instard's configuration. For each plugin it shows the plans with their \
      versions, or the reason why instard refuses the plugin. With a refused plugin the exit status is 3.
      """)

  @Option(
    help: ArgumentHelp(
      "The configuration that names the plugin folders. (default: /etc/instar/instard.yml)",
      valueName: "file"),
    completion: .file(extensions: ["yml"]), transform: FilePath.typed)
  var config: String?

  @OptionGroup var output: OutputOptions

  private struct Installed: CommandOutput {
    struct Plan: Encodable {
      var name: String
      /// In the order of the plan.
      var versions: [Schema.Version]
    }

    var plugin: String
    /// `nil` if the plugin is refused.
    var plans: [Plan]?
    var error: InstarError?

    init(_ description: PluginDescription) {
      plugin = description.plugin
      switch description.result {
      case .success(let manifest):
        plans = manifest.plans.map {
          Plan(name: $0.name, versions: $0.versions.map(\.schema.version))
        }
      case .failure(let error): self.error = error
      }
    }

    var lines: [ConsoleLine] {
      var lines: [ConsoleLine] = ["\(plugin)"]
      lines += (plans ?? []).map {
        "  \($0.name)  \($0.versions.map(\.description).joined(separator: " → "))"
      }
      if let error {
        lines.append("  refused: \(error.cause)")
        lines += error.next.map { ["  next: \($0)"] } ?? []
      }
      return lines
    }
  }

  func perform() async throws(InstarError) -> ExitStatus {
    let plugins = try await InstalledPlugins.described(configuration: config).map(Installed.init)
    for plugin in plugins { output.write(plugin) }
    if plugins.isEmpty, !output.json { Console.note("no plugin is installed") }
    return plugins.contains { $0.error != nil } ? .refused : .done
  }
}
