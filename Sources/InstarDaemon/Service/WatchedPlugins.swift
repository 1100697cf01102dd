import Foundation
import InstarConfiguration
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire

/// The plugin folders: lists them, has new plugins described, and makes events about stores of the changes.
///
/// Invariants:
/// - A folder is watched before it is listed.
/// - Stores are probed only after the plugins found at the start are described (`released`, once).
/// - A file that cannot be used is reported only when nobody wrote it for `quietTime`.
struct WatchedPlugins {
  typealias Instant = ContinuousClock.Instant

  private static let quietTime = Duration.seconds(2)

  var configuration: Configuration
  private let keepers: KeeperRequests
  private let log: EventLog
  private var registry = PluginRegistry()
  private var problems: Set<InstarError> = []
  /// `nil` while plugins need no signature.
  private var trustedKeys: TrustedKeys?
  /// By plugin, the version of its signature's file.
  private var signatures: [String: WatchedVersion] = [:]
  /// Whether keys or signatures changed while plugins were being described.
  private var describesAllAgain = false
  private var isReleased = false
  /// By the path of a watch, that it names plans that no usable plugin has.
  private(set) var missingPlans: [String: InstarError] = [:]
  /// When to list the folders again; `nil` if there is no reason to.
  private(set) var listDue: Instant?

  init(_ configuration: Configuration, keepers: KeeperRequests, log: EventLog) {
    self.configuration = configuration
    self.keepers = keepers
    self.log = log
  }

  /// The plugins that probes and runs may use.
  var usable: [String] { registry.usable }
  var refused: [Manager.RefusedPlugin] { registry.refused }
  /// The names of the plans that the usable plugins have.
  var planNames: Set<String> { registry.planNames }

  /// Handles a notification of the kernel.
  mutating func handle(_ event: FolderWatch.Event) {
    switch event {
    case .changed(let folder, let name, _):
      // No name: the folder's own owner or mode.
      guard
        folder == configuration.trustedKeysFolder
          || configuration.pluginFolders.contains(folder)
            && (name.isEmpty || PluginFolder.isPlugin(name) || name.hasSuffix(".so.sig"))
      else { return }
      listDue = .now + configuration.debounce
    case .removed(let folder):
      guard (configuration.pluginFolders + [configuration.trustedKeysFolder]).contains(folder)
      else { return }
      listDue = .now + configuration.debounce
    case .moved(let old, let new):
      guard configuration.pluginFolders.contains(where: { [old, new].contains($0) }) else { return }
      listDue = .now + configuration.debounce
    case .overflow:
      listDue = .now
    }
  }

  /// Lists the folders, and has new plugins described.
  mutating func list(watchedBy kernelWatch: FolderWatch) -> [StoreQueue.Event] {
    listDue = nil
    var files: [String: WatchedVersion] = [:]
    var found: Set<InstarError> = []
    for folder in configuration.pluginFolders {
      do throws(InstarError) {
        // A folder that does not exist yet is found at a rescan.
        let isWanted = configuration.namedPluginFolders.contains(folder)
        if isWanted || FileManager.default.fileExists(atPath: folder) {
          try kernelWatch.add(folder)
        }
        files.merge(try PluginFolder.list(folder)) { first, _ in first }
      } catch {
        var problem = error
        problem.next = error.next ?? PluginFolder.advice(on: folder)
        found.insert(problem)
      }
    }
    for problem in found.subtracting(problems) { log.post(.watchFailed(problem)) }
    problems = found
    let events = report(registry.list(files))
    checkSignatures(of: files.keys, watchedBy: kernelWatch)
    registry.describeAgain(refusedWith: .untrustedPlugin)
    return events + describeNext()
  }

  /// Has plugins described again after a change of keys or signatures: a key may have been revoked.
  private mutating func checkSignatures(
    of plugins: some Sequence<String>, watchedBy kernelWatch: FolderWatch
  ) {
    var keys: TrustedKeys?
    var versions: [String: WatchedVersion] = [:]
    if configuration.requiresSignature {
      let folder = configuration.trustedKeysFolder
      // A folder that cannot be watched is read at the next rescan.
      if FileManager.default.fileExists(atPath: folder) { try? kernelWatch.add(folder) }
      keys = .ofThisDaemon(in: folder)
      for plugin in plugins {
        versions[plugin] = PluginFolder.version(of: SignaturePolicy.signature(of: plugin))
      }
    }
    guard keys != trustedKeys || versions != signatures else { return }
    for problem in keys?.problems ?? [] where trustedKeys?.problems.contains(problem) != true {
      log.post(.problem(problem))
    }
    keepers.supervisor.requireSignatures(by: keys?.keys)
    trustedKeys = keys
    signatures = versions
    describesAllAgain = registry.isBusy
    registry.describeAllAgain()
  }

  /// Has every plugin described again, because a usable one failed or an operator asks for it.
  mutating func describeAllAgain() {
    registry.describeAllAgain()
  }

  /// Starts the next description, unless one is in progress.
  mutating func describeNext() -> [StoreQueue.Event] {
    let plugins = registry.nextToDescribe()
    guard plugins.isEmpty else {
      keepers.describe(plugins)
      return []
    }
    guard !registry.isBusy else { return [] }
    // A plugin that was written a moment ago is described again.
    if listDue == nil { noteMissingPlans() }
    guard !isReleased else { return [] }
    isReleased = true
    return [.released]
  }

  /// Reports once the plans that a watch names and no usable plugin has.
  private mutating func noteMissingPlans() {
    let known = planNames
    let refused = refused.map(\.plugin)
    let correction =
      "correct the name in the configuration, and run: systemctl reload instard"
    var missing: [String: InstarError] = [:]
    for watch in configuration.watches {
      let names = watch.plans.filter { !known.contains($0) }
      guard !names.isEmpty else { continue }
      let error = InstarError(
        .noPlan, "cannot use the key 'plan' of the watch '\(watch.path)'",
        cause: names.map { PlanSelection.reason(forMissing: $0, known: known, refused: refused) }
          .joined(separator: "; "),
        next: refused.isEmpty
          ? "install the plugin; or \(correction)"
          : "to see why, run: instarctl status; or \(correction)")
      missing[watch.path] = error
      if missingPlans[watch.path] != error { log.post(.settingIgnored(error)) }
    }
    missingPlans = missing
  }

  /// Handles the descriptions of plugins.
  mutating func handle(_ descriptions: [PluginDescription]) -> [StoreQueue.Event] {
    let descriptions = descriptions.map { description -> PluginDescription in
      let result = description.result.mapError { trustedKeys?.explaining($0) ?? $0 }
      return (description.plugin, result)
    }
    var versions: [String: WatchedVersion] = [:]
    for description in descriptions {
      versions[description.plugin] = PluginFolder.version(of: description.plugin)
    }
    let fresh = versions.filter { PluginFolder.isFresh($0.value, age: Self.quietTime) }
    let (changes, isStale) = registry.describe(
      descriptions, versions: versions, fresh: Set(fresh.keys))
    if describesAllAgain {
      describesAllAgain = false
      registry.describeAllAgain()
    }
    if isStale { listDue = .now + max(configuration.debounce, .milliseconds(100)) }
    return report(changes) + describeNext()
  }

  private func report(_ changes: [PluginRegistry.Change]) -> [StoreQueue.Event] {
    var isUsableSetChanged = false
    for change in changes {
      switch change {
      case .accepted(let plugin, let manifest, let rival):
        log.post(.pluginAccepted(plugin: plugin, manifest, rival: rival))
        isUsableSetChanged = true
      case .refused(let plugin, let error, let wasUsable):
        log.post(.pluginRefused(plugin: plugin, error))
        if wasUsable { isUsableSetChanged = true }
      case .removed(let plugin):
        log.post(.pluginRemoved(plugin: plugin))
        isUsableSetChanged = true
      }
    }
    return isUsableSetChanged
      ? [.pluginsKnown(registry.usableFiles), .verdictsInDoubt] : []
  }
}
