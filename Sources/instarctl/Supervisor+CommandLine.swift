import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire

extension Supervisor {
  /// The supervisor of a command: the caller named the stores and plugins; root works on a store as its owner.
  convenience init(stateFolder: StateFolder? = nil) throws(InstarError) {
    self.init(
      installation: try .locate(), stateFolder: stateFolder, rights: .ofCommandLine,
      reader: FilePath.reader)
  }

  /// Returns the plans of one plugin, which a confined worker loads.
  func plans(of plugin: String) async throws(InstarError) -> [PlanManifest] {
    try await describe(plugins: [plugin]).first?.result.get().plans ?? []
  }
}
