import InstarSchema
import InstarSupervisor
import InstarWire

/// Knows every plugin file and whether it can be used: listings and descriptions in, changes out.
///
/// States of a file:
///
/// ```text
///  (none) ──listed──▶ waiting ──▶ describing ──▶ known: usable or refused
///                        ▲             │              │
///                        └── changed ──┴── again ─────┘
/// ```
///
/// Invariants:
/// - At most one description is in progress.
/// - A verdict concerns the listed version of the file. It is dropped when the file changed meanwhile, and so is a
///   refusal of a file that was written a moment ago: a plugin that is still being copied is not reported as broken.
/// - Each verdict on a version of a file is reported once.
/// - A changed plugin is not used before it is described again. One that is described again is used meanwhile.
struct PluginRegistry: Sendable {
  /// A new verdict on one file.
  enum Change: Sendable, Hashable {
    /// `rival`: a usable plugin with a plan that is as far, under the same name.
    case accepted(String, PluginManifest, rival: String?)
    /// `wasUsable`: it was in use before, in this version of the file or an earlier one.
    case refused(String, InstarError, wasUsable: Bool)
    case removed(String)
  }

  private enum State: Sendable {
    case waiting
    case describing
    case known
  }

  private struct Entry: Sendable {
    /// `nil` when the verdict on it was dropped.
    var version: WatchedVersion?
    var state = State.waiting
    /// The last verdict on this version of the file.
    var verdict: Result<PluginManifest, InstarError>?
    /// An earlier version of the file was usable, and stores may have been matched with it.
    var wasUsable = false

    var isUsable: Bool {
      if case .success? = verdict { true } else { false }
    }
  }

  private var entries: [String: Entry] = [:]
  private var isDescribing = false

  /// A registry that knows no plugin.
  init() {}

  /// The plugins that probes and runs may use, ordered by path.
  var usable: [String] {
    entries.filter(\.value.isUsable).map(\.key).sorted()
  }

  /// The plugins that cannot be used, ordered by path.
  var refused: [Manager.RefusedPlugin] {
    entries.compactMap { path, entry in
      guard case .failure(let error)? = entry.verdict else { return nil }
      return Manager.RefusedPlugin(plugin: path, error: error)
    }.sorted { $0.plugin < $1.plugin }
  }

  /// The names of the plans that the usable plugins have.
  var planNames: Set<String> {
    entries.values.reduce(into: []) { names, entry in
      guard case .success(let manifest)? = entry.verdict else { return }
      names.formUnion(manifest.plans.map(\.name))
    }
  }

  /// The files of the usable plugins, ordered by path.
  var usableFiles: [RolloutRecord.PluginFile] {
    usable.compactMap { path in
      entries[path]?.version.map {
        RolloutRecord.PluginFile(
          path: path, bytes: $0.sizeBytes, modified: $0.modifiedNanoseconds)
      }
    }
  }

  /// Whether some file has no description yet.
  var isBusy: Bool {
    isDescribing || entries.values.contains { $0.state == .waiting }
  }

  /// Replaces the listing with the plugin files that exist now.
  ///
  /// - Returns: the plugins that are gone.
  mutating func list(_ files: [String: WatchedVersion]) -> [Change] {
    var changes: [Change] = []
    for path in entries.keys.sorted() where files[path] == nil {
      entries[path] = nil
      changes.append(.removed(path))
    }
    for (path, version) in files where entries[path]?.version != version {
      let wasUsable = entries[path].map { $0.isUsable || $0.wasUsable } ?? false
      entries[path] = Entry(version: version, wasUsable: wasUsable)
    }
    return changes
  }

  /// The plugins to describe next; empty while a description is in progress, and when there are none.
  mutating func nextToDescribe() -> [String] {
    guard !isDescribing else { return [] }
    let waiting = entries.filter { $0.value.state == .waiting }.map(\.key).sorted()
    for path in waiting { entries[path]?.state = .describing }
    isDescribing = !waiting.isEmpty
    return waiting
  }

  /// Lets every plugin be described again, also the refused ones: the reason may have been elsewhere.
  mutating func describeAllAgain() {
    for (path, entry) in entries where entry.state == .known {
      entries[path]?.state = .waiting
    }
  }

  /// Lets the plugins that were refused with a code be described again: the reason may be in the folders above them.
  mutating func describeAgain(refusedWith code: InstarError.Code) {
    for (path, entry) in entries where entry.state == .known {
      if case .failure(let error)? = entry.verdict, error.code == code {
        entries[path]?.state = .waiting
      }
    }
  }

  /// Records the descriptions of plugins, or why they cannot be used.
  ///
  /// - Parameters:
  ///   - versions: of the files, just now.
  ///   - fresh: files written so recently that somebody may still be writing them; a refusal of one of these is
  ///     dropped.
  /// - Returns: what to report, and whether a verdict was dropped: list the folders again a little later.
  mutating func describe(
    _ results: [PluginDescription],
    versions: [String: WatchedVersion], fresh: Set<String> = []
  ) -> (changes: [Change], isStale: Bool) {
    isDescribing = false
    var changes: [Change] = []
    var isStale = false
    for (path, result) in results {
      guard let entry = entries[path], entry.state == .describing else { continue }
      let isRefusedWhileFresh = if case .failure = result { fresh.contains(path) } else { false }
      guard versions[path] == entry.version, !isRefusedWhileFresh else {
        // No listing has this version: the next one finds it as a changed file.
        entries[path]?.version = nil
        entries[path]?.state = .known
        isStale = true
        continue
      }
      entries[path]?.state = .known
      guard entry.verdict != result else { continue }
      entries[path]?.verdict = result
      switch result {
      case .success(let manifest):
        changes.append(.accepted(path, manifest, rival: rival(of: path, manifest)))
      case .failure(let error):
        changes.append(
          .refused(path, error, wasUsable: entry.isUsable || entry.wasUsable))
      }
    }
    return (changes, isStale)
  }

  private func rival(of plugin: String, _ manifest: PluginManifest) -> String? {
    func ends(_ manifest: PluginManifest) -> Set<String> {
      Set(
        manifest.plans.map { "\($0.name) \($0.versions.last.map { "\($0.schema.version)" } ?? "")" }
      )
    }
    let own = ends(manifest)
    return usable.first { other in
      guard other != plugin, case .success(let others)? = entries[other]?.verdict else {
        return false
      }
      return !ends(others).isDisjoint(with: own)
    }
  }
}
