internal import Foundation
internal import InstarLinux
internal import InstarSchema
internal import InstarStore
internal import InstarWire

/// What the plugins say of themselves, asked once for each file.
final class PluginCatalog {
  private let host: any PluginHost
  private var known: [String: (version: FileVersion, manifest: PluginManifest)] = [:]

  private struct FileVersion: Hashable {
    var inode: UInt64
    var size: Int64
    var seconds: Int
    var nanoseconds: Int
  }

  /// One plan, and the plugin that carries it.
  struct Plan {
    var plugin: String
    var manifest: PlanManifest
  }

  init(host: any PluginHost) {
    self.host = host
  }

  /// - Throws: `notAPlugin`, `wrongABI` (before anything of the file is loaded), or why a worker
  ///   could not load it.
  func manifest(of plugin: String) throws(InstarError) -> PluginManifest {
    guard plugin.hasPrefix("/") else {
      throw InstarError(
        .notAPlugin, "cannot read plugin '\(plugin)'", cause: "its path is not absolute")
    }
    let version = Self.version(of: plugin)
    if let version, let entry = known[plugin], entry.version == version { return entry.manifest }
    let note = try PluginNote.read(path: plugin)
    try note.requireSupportedABI(path: plugin)
    let manifest = try host.describe(plugin: plugin)
    for plan in manifest.plans where plan.versions.isEmpty {
      throw InstarError(
        .invalidPlan, "cannot use plan '\(plan.name)' of plugin '\(plugin)'",
        cause: "it has no schemas")
    }
    if let version { known[plugin] = (version, manifest) }
    return manifest
  }

  /// All plans of some plugins.
  func plans(of plugins: [String]) throws(InstarError) -> [Plan] {
    var plans: [Plan] = []
    for plugin in plugins {
      plans += try manifest(of: plugin).plans.map { Plan(plugin: plugin, manifest: $0) }
    }
    return plans
  }

  private static func version(of path: String) -> FileVersion? {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    return FileVersion(
      inode: UInt64(status.st_ino), size: Int64(status.st_size), seconds: status.st_mtim.tv_sec,
      nanoseconds: status.st_mtim.tv_nsec)
  }
}

extension [PluginCatalog.Plan] {
  /// Where plain stores of these plans say their versions.
  var versionSources: Set<VersionSource> { Set(map(\.manifest.versionSource)) }
}
