internal import Foundation
internal import InstarLinux
public import InstarSchema
internal import InstarStore
internal import InstarWire

/// Opens stores for one supervisor: the only part of Instar that writes originals. It never loads a plugin.
///
/// A keeper answers requests one after the other, in order, on the caller's thread. Between requests it keeps only the
/// manifests of plugins, the names of run folders and the inodes of removed journals. When the supervisor closes the
/// conversation, the keeper ends the current run, removes its clone, and `serve` returns.
public final class Keeper {
  private let conversation: any KeeperConversation
  private let host: any PluginHost
  private let catalog: PluginCatalog
  private let openPolicy: OpenPolicy
  private let runFileNames = RunFileNames()
  private let removedJournals = RemovedJournals()

  /// - Parameter openPolicy: Which stores the keeper may open.
  package init(
    conversation: any KeeperConversation, host: any PluginHost, openPolicy: OpenPolicy = .any
  ) {
    self.conversation = conversation
    self.host = host
    self.openPolicy = openPolicy
    catalog = PluginCatalog(host: host)
  }

  /// Limits the memory and the processor time that SQLite may use in this process. Only for a process that is nothing
  /// but a keeper: it exits when one SQL function does not end.
  public static func limitProcess() {
    GuardedConnection.limitProcessMemory()
    WorkBudget.enforce(exitStatus: KeeperEvent.exitStatusOverBudget)
  }

  /// Answers requests until the supervisor closes the conversation.
  ///
  /// - Throws: `protocolViolation`, or `interrupted` when an answer could not be delivered.
  public func serve() throws(InstarError) {
    while let request = try conversation.next(resting: removedJournals.forget) {
      switch request {
      case .describe(let plugins):
        try describe(plugins)
      case .probe(let stores, let plans, let rows, let findsHolders):
        try probe(stores, plans, rows: rows, findsHolders: findsHolders)
      case .readSchema(let stores):
        try readSchemas(of: stores)
      case .plan(let stores, let plans, let adopt):
        try plan(stores, plans, adopt: adopt)
      case .verify(let stores, let plans, let busyTimeout):
        try verify(stores, plans, busyTimeout: busyTimeout)
      case .migrate(let request):
        var run = MigrationRun(
          request, conversation: conversation, host: host, openPolicy: openPolicy,
          runFileNames: runFileNames, removedJournals: removedJournals
        ) { [catalog] in try WorkBudget.paused { try catalog.requiredPlans(of: request.plans) } }
        try conversation.send(.finished(WorkBudget.within(store: request.store) { run.perform() }))
      case .restore(let request):
        var run = RestoreRun(request, conversation: conversation, openPolicy: openPolicy)
        let bytes = request.backup.bytesToRead
        try conversation.send(
          .finished(WorkBudget.within(store: request.store, others: bytes) { run.perform() }))
      case .backup(let reference, let work):
        try handle(reference, work)
      case .recover(let record):
        try recover(record)
      case .proceed, .refrain:
        throw InstarError(
          .protocolViolation, "cannot answer a request",
          cause: "the supervisor answered a question that the keeper did not ask",
          next: InstarError.adviceOnOtherVersion)
      }
    }
  }

  private func describe(_ plugins: [String]) throws(InstarError) {
    for plugin in plugins {
      let event: KeeperEvent
      do {
        event = .described(try catalog.manifest(of: plugin))
      } catch {
        event = .failed(error)
      }
      try conversation.send(event)
    }
  }

  private func probe(
    _ stores: [String], _ selection: PlanSelection, rows: RowCounting, findsHolders: Bool
  ) throws(InstarError) {
    let plans: [PluginCatalog.Plan]
    do {
      plans = try catalog.plans(of: selection)
    } catch {
      return try conversation.send(.failed(error))
    }
    var holders = StoreHolders()
    let folders = TrustedFolders()
    for store in stores {
      var report: ProbeReport
      do {
        let probe = try WorkBudget.within(store: store) { () throws(InstarError) in
          try openPolicy.probe(store, folders: folders) { path throws(InstarError) in
            try StoreProbe.read(
              path, rows: rows, versionSources: plans.versionSources,
              busyTimeout: Self.busyTimeout(ofEachOf: stores.count))
          }
        }
        report = ProbeReport(probe, store: store, plans: plans)
        if plans.isEmpty {
          report.reason =
            selection.reasonForNone ?? report.reason
            ?? selection.reasonForNoPlugin(ofProbeOf: store)
        }
      } catch {
        report = ProbeReport(error, store: store)
      }
      // Whoever reads that a store is in use wants to know by whom.
      if findsHolders || report.state == .busy { report.holders = holders.ofFile(store) }
      try conversation.send(.probed(EncodedProbeReport(report)))
    }
    try conversation.send(.done)
  }

  /// Returns how many seconds the probe of each store waits for a process that writes it. Many stores share a second,
  /// because all others wait for each that stays locked. Each has a moment at least: most commits take no longer.
  private static func busyTimeout(ofEachOf count: Int) -> Double {
    max(1 / Double(max(count, 1)), 0.05)
  }

  private func readSchemas(of stores: [String]) throws(InstarError) {
    for store in stores {
      let event: KeeperEvent
      do {
        event = .schema(
          try WorkBudget.within(store: store) { () throws(InstarError) in
            try SchemaReport.read(store, openPolicy: openPolicy)
          })
      } catch {
        event = .failed(error.about(store: store).namingHolders(of: store))
      }
      try conversation.send(event)
    }
  }

  private func plan(
    _ stores: [String], _ selection: PlanSelection, adopt: Schema.Version?
  ) throws(InstarError) {
    let plans: [PluginCatalog.Plan]
    do {
      plans = try catalog.requiredPlans(of: selection, "cannot plan migrations")
    } catch {
      return try conversation.send(.failed(error))
    }
    for store in stores {
      try conversation.send(
        .planned(
          WorkBudget.within(store: store) { planned(store, plans, of: selection, adopt: adopt) }))
    }
    try conversation.send(.done)
  }

  private func planned(
    _ store: String, _ plans: [PluginCatalog.Plan], of selection: PlanSelection,
    adopt: Schema.Version?
  ) -> PlanReport {
    let probe: StoreProbe
    do {
      probe = try openPolicy.probe(store) { path throws(InstarError) in
        try StoreProbe.read(path, versionSources: plans.versionSources)
      }
    } catch {
      let known = error.namingHolders(of: store)
      return PlanReport(store: store, probe: ProbeReport(known, store: store), error: known)
    }
    var report = PlanReport(
      store: store, probe: ProbeReport(probe, store: store, plans: plans))
    do {
      // Somebody who only looks is not told to change the store.
      var command = MigrationCommand(store: probe.file.path, plugins: [])
      command.name = .plan
      let (inspection, isCurrent) = try StoreInspection.inspect(
        probe, plans: plans, pluginFolders: selection.folders, adopt: adopt,
        adoptsDifferences: true, command: command)
      if !isCurrent {
        report.findings =
          try inspection.findings(openPolicy) + inspection.spaceFindings()
          + inspection.path.unknownOriginalNames.map {
            Finding(severity: .warning, message: $0.sentence, fix: $0.correction)
          }
          + inspection.rowsInNeed(openPolicy, includesWarnings: true)
          + inspection.missingRequiredValues(openPolicy)
          + inspection.duplicateValues(openPolicy, includesWarnings: true)
          + inspection.modelCounts(openPolicy)
          + inspection.removedValues(openPolicy) + inspection.convertedValues(openPolicy)
          + inspection.readingFindings(openPolicy) + inspection.brokenLinks(openPolicy)
        let path = inspection.path
        if !path.invariants.isEmpty { report.invariants = path.invariants }
        report.migration =
          path.stages.isEmpty
          ? PlannedMigration(plan: path.plan, from: path.from, to: path.to, stages: [])
          : try host.plan(
            path.plan, from: path.from, plugin: inspection.plugin,
            store: StoreDDL.read(probe, openPolicy: openPolicy))
      }
    } catch {
      report.error =
        error
        .about("cannot plan the migration of '\(store)'", store: store, state: "unchanged")
        .namingHolders(of: store)
    }
    return report
  }

  private func verify(
    _ stores: [String], _ selection: PlanSelection, busyTimeout: Double
  ) throws(InstarError) {
    let plans: [PluginCatalog.Plan]
    do {
      plans = try catalog.plans(of: selection)
      // A plan that was named must exist, but a store is verified without any too.
      if !selection.names.isEmpty {
        _ = try catalog.requiredPlans(of: selection, "cannot verify stores")
      }
    } catch {
      return try conversation.send(.failed(error))
    }
    for store in stores {
      let report = WorkBudget.within(store: store) {
        VerificationReport(
          of: store, plans: plans, openPolicy: openPolicy, busyTimeout: busyTimeout)
      }
      try conversation.send(.verified(report))
    }
    try conversation.send(.done)
  }

  private func handle(_ reference: BackupReference, _ work: BackupWork) throws(InstarError) {
    let backup = StoredBackup(reference: reference)
    let event: KeeperEvent
    do {
      event = try WorkBudget.within(bytes: reference.bytesToRead) { () throws(InstarError) in
        switch work {
        case .verify: try backup.verify()
        case .keepCopy(let target): return .copied(try backup.keepCopy(at: target))
        case .copy(let target): try backup.usable().copy(to: target)
        case .remove: try backup.remove()
        case .removeRemains: backup.removeRemains()
        }
        return .done
      }
    } catch {
      event = .failed(error.about(store: reference.store))
    }
    try conversation.send(event)
  }

  private func recover(_ record: PhaseRecord) throws(InstarError) {
    let event: KeeperEvent
    do {
      event = .recovered(
        try WorkBudget.within(store: record.store) { () throws(InstarError) in
          try Recovery(record: record, openPolicy: openPolicy).perform()
        })
    } catch {
      event = .failed(error)
    }
    try conversation.send(event)
  }
}
