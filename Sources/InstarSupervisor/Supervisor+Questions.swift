import Foundation
import InstarLinux
public import InstarSchema
public import InstarWire
import Synchronization

/// Questions to keepers about plugins and stores, which change nothing.
extension Supervisor {
  /// Returns one description per plugin, untrusted plugins first. A plugin that is not trusted, cannot be loaded or
  /// crashes the worker has an error as its result.
  public func describe(plugins: [String]) async throws(InstarError) -> [PluginDescription] {
    let descriptions = Mutex<[PluginDescription]>([])
    var trusted: [String] = []
    for plugin in plugins {
      do throws(InstarError) {
        try access.requireTrusted(plugins: [plugin])
        trusted.append(plugin)
      } catch {
        descriptions.withLock { $0.append((plugin, .failure(error))) }
      }
    }
    try await inBatch(
      trusted, as: access.identityForPlugins, request: { .describe(plugins: $0) },
      endsInDone: false
    ) { (plugin, reply) throws(InstarError) in
      let result: Result<PluginManifest, InstarError>
      switch reply {
      case .event(.described(let manifest)): result = .success(manifest)
      case .event(.failed(let error)), .died(let error): result = .failure(error)
      case .event: throw unexpectedEvent()
      }
      descriptions.withLock { $0.append((plugin, result)) }
    }
    return descriptions.withLock { $0 }
  }

  /// Returns the schema of a store, read without changing it.
  public func schema(of store: String) async throws(InstarError) -> SchemaReport {
    let schema = Mutex<SchemaReport?>(nil)
    let identity =
      identities(ofStores: [store], endsAtDeath: true).first?.identity
      ?? .failure(unanswered(store))
    try await inBatch(
      [store], as: try identity.get(), request: { .readSchema(stores: $0) },
      endsInDone: false, limit: { [probeLimit] _ in probeLimit }
    ) { (store, reply) throws(InstarError) in
      switch reply {
      case .event(.schema(let report)) where report.store == store:
        schema.withLock { $0 = report }
      case .event(.failed(let error)), .died(let error): throw error
      case .event: throw unexpectedEvent()
      }
    }
    guard let report = schema.withLock({ $0 }) else { throw unexpectedEvent() }
    return report
  }

  /// Probes stores without changing them, and reports on each. The reports have the order of the stores, unless keepers
  /// run as the stores' owners and there are several owners. Several keepers read many stores; a report then waits for
  /// the reports before it.
  ///
  /// - Parameters:
  ///   - plans: The plans that each store is compared with.
  ///   - rows: Which rows to count. Counting all takes time that grows with the store.
  ///   - findsHolders: Whether the reports name the processes that have a store open. This searches all processes.
  ///   - endsAtDeath: Whether to skip the rest of a user's stores after one whose keeper died or exceeded its limit,
  ///     and of all stores after one whose file system does not answer.
  ///   - onReport: Called with one report at a time.
  public func probe(
    stores: [String], plans: PlanSelection, rows: RowCounting, findsHolders: Bool = false,
    endsAtDeath: Bool = false,
    onReport: @escaping @Sendable (ProbeReport) -> Void
  ) async throws(InstarError) {
    try await probe(
      stores: stores, plans: plans, rows: rows, findsHolders: findsHolders, endsAtDeath: endsAtDeath
    ) { (report) throws(InstarError) in
      let report = try report.report()
      return { onReport(report) }
    }
  }

  /// Probes stores as `probe(…onReport:)` does, but passes reports on as JSON, and prepares the output on several
  /// threads.
  ///
  /// - Parameter prepare: Called with each report as soon as it arrives, by several threads at once. What it returns
  ///   is called in order, one at a time.
  public func probe(
    stores: [String], plans: PlanSelection, rows: RowCounting, findsHolders: Bool = false,
    endsAtDeath: Bool = false,
    prepare: @escaping @Sendable (EncodedProbeReport) throws(InstarError) -> @Sendable () -> Void
  ) async throws(InstarError) {
    try access.requireTrusted(plugins: plans.plugins)
    let batches = try batches(of: stores, endsAtDeath: endsAtDeath) {
      (store, error) throws(InstarError) in
      var report = ProbeReport(
        store: store, state: error.code == .timeLimit ? .unreadable : .unknown, reason: error.cause)
      report.error = error
      try prepare(EncodedProbeReport(report))()
    }
    // An error with one user's stores does not stop the probes of another user's.
    var failure: InstarError?
    for batch in batches {
      let parts = endsAtDeath ? [batch.stores] : Self.parts(of: batch.stores)
      let reports = OrderedReports()
      let failures = await withTaskGroup(of: (part: Int, error: InstarError?).self) { group in
        for (part, stores) in parts.enumerated() {
          group.addTask {
            defer { reports.end(part) }
            do throws(InstarError) {
              try await self.probe(
                stores, as: batch.identity, plans: plans, rows: rows,
                findsHolders: findsHolders, endsAtDeath: endsAtDeath
              ) { (report) throws(InstarError) in reports.add(try prepare(report), of: part) }
              return (part, nil)
            } catch {
              return (part, error)
            }
          }
        }
        return await group.reduce(into: [Int: InstarError]()) { $0[$1.part] = $1.error }
      }
      let inOrder = failures.sorted { $0.key < $1.key }.map(\.value)
      if let interruption = inOrder.first(where: { $0.code == .interrupted }) { throw interruption }
      failure = failure ?? inOrder.first
    }
    if let failure { throw failure }
  }

  /// Starting a keeper takes as long as reading this number of small stores.
  private static let storesForKeeper = 100

  /// Divides stores among one keeper for each processor. One keeper reads a store that is named twice: a second keeper
  /// would report the first as a process that has the store open.
  private static func parts(of stores: [String]) -> [[String]] {
    let processors = ProcessInfo.processInfo.activeProcessorCount
    let count = max(min(stores.count / storesForKeeper, processors), 1)
    guard count > 1, Set(stores).count == stores.count else { return [stores] }
    let size = (stores.count + count - 1) / count
    return stride(from: 0, to: stores.count, by: size).map {
      Array(stores[$0..<min($0 + size, stores.count)])
    }
  }

  /// Probes stores with one keeper, in order.
  private func probe(
    _ stores: [String], as identity: ProcessIdentity, plans: PlanSelection, rows: RowCounting,
    findsHolders: Bool, endsAtDeath: Bool,
    onReport: @escaping @Sendable (EncodedProbeReport) throws(InstarError) -> Void
  ) async throws(InstarError) {
    try await inBatch(
      stores, as: identity,
      request: {
        .probe(stores: $0, plans: plans, rows: rows, findsHolders: findsHolders)
      },
      endsInDone: true, endsAtDeath: endsAtDeath,
      limit: { store in
        rows == .all
          ? self.probeLimit + self.answeredTimeToReadAll(of: store) : self.probeLimit
      }
    ) { (store, reply) throws(InstarError) in
      switch reply {
      // A hostile store may have taken the keeper over: its reports count only for the store that it was asked about.
      case .event(.probed(let report)) where report.store == store:
        try onReport(self.addingHold(to: report))
      case .died(let error):
        var report = ProbeReport(
          store: store, state: error.code == .keeperDied ? .unknown : .unreadable,
          reason: "\(error.what): \(error.cause)")
        report.error = error.about(store: store)
        try onReport(EncodedProbeReport(report))
      case .event(.failed(let error)): throw error
      case .event: throw unexpectedEvent()
      }
    }
  }

  private func addingHold(
    to report: EncodedProbeReport
  ) throws(InstarError) -> EncodedProbeReport {
    guard let hold = try hold(on: report.store) else { return report }
    var held = try report.report()
    held.hold = hold
    return try EncodedProbeReport(held)
  }

  /// The hold to show in a report. An unreadable hold is ignored here: the run of the store reports it and does not
  /// start.
  ///
  /// - Throws: `timeLimit` where the file system of the store does not answer. It did when the keeper read the store.
  private func hold(on store: String) throws(InstarError) -> Hold? {
    guard let stateFolder, stateFolder.hasHolds else { return nil }
    let answers = reader.answers(about: [store]) { try? stateFolder.hold(on: $0) }
    guard let hold = answers.first else { throw unanswered(store) }
    return hold
  }

  private func unanswered(_ store: String) -> InstarError {
    Self.unansweredReading(store, within: reader.patience)
  }

  /// Groups stores by the user that their keeper runs as, in the order of each user's first store.
  ///
  /// - Parameters:
  ///   - endsAtDeath: Whether to leave out the stores after one whose file system does not answer.
  ///   - refuse: Called with each store that is refused, and the reason.
  private func batches(
    of stores: [String], endsAtDeath: Bool = false,
    refuse: (String, InstarError) throws(InstarError) -> Void
  ) throws(InstarError) -> [(identity: ProcessIdentity, stores: [String])] {
    var batches: [(identity: ProcessIdentity, stores: [String])] = []
    for (store, identity) in identities(ofStores: stores, endsAtDeath: endsAtDeath) {
      do throws(InstarError) {
        let identity = try identity.get()
        if let place = batches.firstIndex(where: { $0.identity == identity }) {
          batches[place].stores.append(store)
        } else {
          batches.append((identity, [store]))
        }
      } catch {
        try refuse(store, error)
      }
    }
    return batches
  }

  private func identities(
    ofStores stores: [String], endsAtDeath: Bool
  ) -> [(store: String, identity: Result<ProcessIdentity, InstarError>)] {
    // Then nothing is asked. But a keeper would hang at each store that gave no answer before.
    if access.rights == .caller {
      let isSilent = reader.silence()
      return stores.map { ($0, isSilent($0) ? .failure(unanswered($0)) : .success(.inherited)) }
    }
    var identities: [(store: String, identity: Result<ProcessIdentity, InstarError>)] = []
    var rest = stores[...]
    while !rest.isEmpty {
      let folders = TrustedFolders()
      let answers = reader.answers(about: Array(rest)) { [access] store in
        Result { () throws(InstarError) in
          try access.identity(forStore: store, folders: folders)
        }
      }
      identities += zip(rest, answers).map { ($0, $1) }
      rest.removeFirst(answers.count)
      guard let silent = rest.first else { break }
      let isBesideSilent = reader.silence()
      let isSilent = { (store: String) in store == silent || isBesideSilent(store) }
      for store in endsAtDeath ? [silent] : rest.filter(isSilent) {
        identities.append((store, .failure(unanswered(store))))
      }
      if endsAtDeath { break }
      rest.removeAll(where: isSilent)
    }
    return identities
  }

  /// Reports what a run would do on each store, without changing it, in the order that `probe` has.
  ///
  /// - Parameter adopt: The version to adopt an unversioned store as.
  public func plan(
    stores: [String], plans: PlanSelection, adopt: Schema.Version?,
    onReport: @escaping @Sendable (PlanReport) -> Void
  ) async throws(InstarError) {
    try access.requireTrusted(plugins: plans.plugins)
    let refuse: @Sendable (String, InstarError) -> Void = { store, error in
      onReport(
        PlanReport(
          store: store, probe: ProbeReport(store: store, state: .unknown, reason: error.cause),
          error: error.about(store: store, state: "unchanged")))
    }
    let complete = completionOfErrors()
    try await ask(
      about: stores, request: { .plan(stores: $0, plans: plans, adopt: adopt) },
      limit: { self.probeLimit * 3 + self.answeredTimeToReadAll(of: $0) }, refuse: refuse
    ) { (store, event) throws(InstarError) in
      guard case .planned(let report) = event, report.store == store else {
        throw unexpectedEvent()
      }
      onReport(try self.completed(report, complete))
    }
  }

  /// Adds the hold on the store to a plan, and completes the commands of its errors and findings.
  private func completed(
    _ planned: PlanReport, _ complete: (InstarError) -> InstarError
  ) throws(InstarError) -> PlanReport {
    var report = planned
    report.probe.hold = try hold(on: report.store)
    if let stateFolder {
      report.error = report.error.map(complete)
      for index in report.findings.indices {
        report.findings[index].fix = report.findings[index].fix.map {
          stateFolder.completing($0, store: report.store)
        }
      }
    }
    if let hold = report.probe.hold {
      report.findings.append(
        Finding(
          severity: .error, code: .heldStore, message: hold.sentence,
          fix: "when the reason is gone, run: "
            + (stateFolder?.releaseCommand(of: hold) ?? hold.releaseCommand)))
    }
    return report
  }

  /// Verifies stores without changing them: whether they are sound, and fit the plans that know them. The reports have
  /// the order that those of `probe` have.
  ///
  /// - Parameters:
  ///   - plans: The plans that each store is compared with.
  ///   - busyTimeout: How long to wait for a process that has a store locked.
  public func verify(
    stores: [String], plans: PlanSelection, busyTimeout: Duration,
    onReport: @escaping @Sendable (VerificationReport) -> Void
  ) async throws(InstarError) {
    try access.requireTrusted(plugins: plans.plugins)
    let refuse: @Sendable (String, InstarError) -> Void = { store, error in
      onReport(VerificationReport(store: store, unverified: error))
    }
    let complete = completionOfErrors()
    try await ask(
      about: stores,
      request: {
        .verify(stores: $0, plans: plans, busyTimeoutSeconds: busyTimeout.inSeconds)
      },
      limit: {
        self.probeLimit + busyTimeout * 2
          + self.answeredTimeToReadAll(of: $0) * Self.readsOfVerification
      }, refuse: refuse
    ) { (store, event) throws(InstarError) in
      guard case .verified(var report) = event, report.store == store else {
        throw unexpectedEvent()
      }
      report.errors = report.errors.map(complete)
      onReport(report)
    }
  }

  /// Asks keepers about stores, one request for those of each user.
  ///
  /// - Parameters:
  ///   - limit: The time limit for a store.
  ///   - refuse: Called with each store that no keeper can read, and the reason.
  ///   - onAnswer: Called with each answer of a keeper that is not a failure.
  private func ask(
    about stores: [String], request: @escaping @Sendable ([String]) -> KeeperRequest,
    limit: @escaping @Sendable (String) -> Duration,
    refuse: @escaping @Sendable (String, InstarError) -> Void,
    onAnswer: @escaping @Sendable (String, KeeperEvent) throws(InstarError) -> Void
  ) async throws(InstarError) {
    for batch in try batches(of: stores, refuse: refuse) {
      try await inBatch(
        batch.stores, as: batch.identity, request: request, endsInDone: true, limit: limit
      ) { (store, reply) throws(InstarError) in
        switch reply {
        case .died(let error): refuse(store, error)
        case .event(.failed(let error)): throw error
        case .event(let event): try onAnswer(store, event)
        }
      }
    }
  }

  /// Returns what completes the commands of errors about stores of one call. It reads what the ledger has about the
  /// first damaged store, and all of it with the second one, for all others. It asks about the files of damaged stores
  /// only.
  private func completionOfErrors() -> @Sendable (InstarError) -> InstarError {
    guard let stateFolder else { return { $0 } }
    let read = Mutex((first: String?.none, all: StateFolder.BackupRuns?.none))
    return { error in
      stateFolder.completing(error) { store, damage in
        let runs = read.withLock { read in
          if let all = read.all { return all }
          if read.first == nil || read.first == store {
            read.first = store
            return stateFolder.backupRuns(of: store)
          }
          let all = stateFolder.backupRuns()
          read.all = all
          return all
        }
        return stateFolder.remedy(of: store, runs, damage)
      }
    }
  }

  /// A verification reads a store about this often: its rows for their number, and for SQLite's two checks, the indexes
  /// and the references.
  private static let readsOfVerification = 5
}
