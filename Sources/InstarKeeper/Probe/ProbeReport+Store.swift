internal import Foundation
internal import InstarSchema
internal import InstarStore
internal import InstarWire

extension ProbeReport {
  /// Reports a probe, and the match with the plans.
  init(_ probe: StoreProbe, store: String, plans: [PluginCatalog.Plan]) {
    self.init(
      store: store, format: probe.identity.format, state: .unknown,
      version: probe.identity.version,
      entities: probe.entities)
    uuid = probe.uuid
    if !probe.identity.toolVersions.isEmpty { toolVersions = probe.identity.toolVersions }
    fingerprint = probe.identity.fingerprint
    if !probe.entityHashes.isEmpty {
      entityHashes = probe.entityHashes.mapValues { $0.base64EncodedString() }
    }
    sizeBytes = probe.file.state.size
    pageSizeBytes = probe.file.pageSizeBytes
    journalMode = probe.file.usesWriteAheadLog ? "wal" : "delete"
    walBytes = probe.file.pendingLogBytes()
    if probe.identity.format.mayHaveExternalValues,
      let files = ExternalFiles(of: StorePaths(resolvedStore: probe.file.path)).count()
    {
      externalFiles = files.count
      externalBytes = files.bytes
    }
    journalBytes = probe.file.journalSizeBytes
    replicator = probe.replicator
    reason = probe.metadataProblem
    do {
      guard
        let match = try StoreMatch(
          of: probe.identity, hashes: probe.entityHashes, among: plans)
      else { return }
      // The plan may keep the version of a plain store elsewhere than in `PRAGMA user_version`.
      if !probe.identity.format.hasMetadata { version = match.identity.version }
      state = match.match.state
      if !match.match.reason.isEmpty { reason = match.match.reason }
      if match.match.state != .unknown {
        plan = match.plan.manifest.name
        plugin = match.plan.plugin
        planVersion = match.plan.manifest.versions.last?.schema.version
      }
      nearestVersion = match.match.nearest
      if !match.match.fitting.isEmpty { fittingVersions = match.match.fitting }
      differences = match.match.differences
    } catch {
      reason = error.cause
      self.error = error.about("cannot choose a plan for '\(store)'", store: store)
    }
  }

  /// Reports a file that could not be probed.
  init(_ error: InstarError, store: String) {
    let state: StoreState
    switch error.code {
    case .notAStore: state = .notAStore
    case .corruptStore: state = .corrupt
    case .encryptedStore: state = .encrypted
    case .busyStore: state = .busy
    case .unreadableStore: state = .unreadable
    default: state = .unknown
    }
    self.init(store: store, state: state, reason: error.cause)
    if state == .unknown || state == .unreadable { self.error = error }
  }
}
