internal import InstarSchema
internal import InstarStore
internal import InstarWire

extension VerificationReport {
  /// Verifies a store without changing it and without leaving a side file.
  ///
  /// - Parameters:
  ///   - plans: The plans that may know the store's version. Without one its structure and its models are not checked.
  ///   - busyTimeout: Seconds to wait for a process that has the store locked.
  init(
    of store: String, plans: [PluginCatalog.Plan], openPolicy: OpenPolicy, busyTimeout: Double
  ) {
    let start = ContinuousClock.now
    do throws(InstarError) {
      self = try Self.verify(
        store, plans: plans, openPolicy: openPolicy, busyTimeout: busyTimeout)
    } catch {
      // A store that is too damaged to be probed is damaged, and not only unread.
      self.init(store: store, unverified: error.namingHolders(of: store))
      if error.code == .corruptStore { state = .damaged }
    }
    durationMicroseconds = (ContinuousClock.now - start).inMicroseconds
  }

  private static func verify(
    _ store: String, plans: [PluginCatalog.Plan], openPolicy: OpenPolicy, busyTimeout: Double
  ) throws(InstarError) -> VerificationReport {
    let probe = try openPolicy.probe(store) { path throws(InstarError) in
      try StoreProbe.read(
        path, rows: .all, versionSources: plans.versionSources, busyTimeout: busyTimeout)
    }
    let known = try KnownStore(probe, plans)
    let file = try openPolicy.probeFile(probe.file.path)
    let verification = try StoreReader.withReadOnlyStore(
      file.path, busyTimeout: busyTimeout, known: file
    ) { db in
      var verification = StoreVerification(probe, known.inspection)
      try verification.perform(db)
      return verification
    }
    let findings = verification.findings + [known.misfit].compactMap(\.self)
    var report = VerificationReport(
      store: store, state: findings.isEmpty ? .sound : .damaged,
      errors: findings.map {
        $0.about("cannot verify '\(store)'", store: store, state: "unchanged")
      })
    report.format = probe.identity.format
    report.version = known.inspection?.path.from
    report.plan = known.inspection?.path.plan
    let rows = probe.entities.map(\.rows)
    if !rows.contains(nil) { report.rows = rows.compactMap(\.self).reduce(0, +) }
    report.indexes = verification.indexes
    return report
  }
}

/// What the plans know of a store.
private struct KnownStore {
  /// `nil` where no plan has the store's version.
  var inspection: StoreInspection?
  /// Why the store does not fit the version that it declares.
  var misfit: InstarError?

  /// - Throws: `ambiguousPlan`, or why the plan has no path from the store's version.
  init(_ probe: StoreProbe, _ plans: [PluginCatalog.Plan]) throws(InstarError) {
    guard
      let match = try StoreMatch(of: probe.identity, hashes: probe.entityHashes, among: plans)
    else { return }
    let isKnown = [.current, .behind].contains(match.match.state)
    // A store of another app, or of a version without a plan, has nothing that it must fit.
    guard isKnown || match.match.declaresNearest(of: match.identity) else { return }
    do throws(InstarError) {
      inspection = try StoreInspection.inspect(
        probe, plans: plans, adopt: nil, adoptsDifferences: false,
        command: MigrationCommand(store: probe.file.path, plugins: [])
      ).inspection
    } catch {
      guard !isKnown else { throw error }
      misfit = error
    }
  }
}

extension SchemaMatch {
  /// Whether a store declares a version of the plan and has another structure.
  fileprivate func declaresNearest(of identity: StoreIdentity) -> Bool {
    state == .unknown && nearest != nil && nearest == identity.version
  }
}
