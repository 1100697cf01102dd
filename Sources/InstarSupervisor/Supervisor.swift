import Glibc
public import InstarLinux
public import InstarSchema
public import InstarWire
import Synchronization

/// The verbs of Instar for those that people use it through, instarctl and instard: starts keepers,
/// answers their questions, and alone writes the state folder.
///
/// It opens no store and loads no plugin: neither a hostile file nor a plugin's trap reaches the
/// process it runs in. Any number of calls may go on at the same time; each has a keeper of its
/// own. Handlers are called one after the other, on a thread that may block. A canceled task ends
/// its call in the way `cancel()` does.
public final class Supervisor: Sendable {
  public let installation: Installation
  public let stateFolder: StateFolder?
  let keepers: KeeperPool
  let access: KeeperAccess
  private let writeBackGrace: Duration
  private let probeLimit: Duration
  private let calls = Mutex(Calls())

  private struct Calls {
    var conversations: [ObjectIdentifier: Conversation] = [:]
    /// Once set it stays: a call whose task has not come that far yet is met too.
    var areCanceled = false
  }

  /// - Parameters:
  ///   - stateFolder: Without one, nothing that writes a store can be done: no `migrate`, no
  ///     `recoverAll`.
  ///   - rights: As whom stores are worked on.
  ///   - writeBackGrace: How long `cancel` leaves a keeper that writes a store back to finish.
  ///   - probeLimit: How long a keeper may look at one store. Where all rows are counted, a large store takes longer.
  public init(
    installation: Installation, stateFolder: StateFolder?, rights: KeeperRights = .caller,
    writeBackGrace: Duration = .seconds(900), probeLimit: Duration = .seconds(60)
  ) {
    self.installation = installation
    self.stateFolder = stateFolder
    access = KeeperAccess(rights)
    self.writeBackGrace = writeBackGrace
    self.probeLimit = probeLimit
    keepers = KeeperPool(
      installation: installation, opensOwnStoresOnly: rights == .storeOwner)
  }

  /// Ends every call that goes on, and every one that is begun later. A run that has not begun to
  /// write its store back ends as failed, with code `interrupted` and the store unchanged; one that
  /// has is left to finish, for a quarter of an hour: then its keeper hangs, and is replaced by one
  /// that finishes the run or clears it away. Recoveries go on. May be called from any thread; the calls return soon.
  public func cancel() {
    let conversations = calls.withLock { calls in
      calls.areCanceled = true
      return Array(calls.conversations.values)
    }
    for conversation in conversations { conversation.cancel() }
  }

  /// Ends one run in the way `cancel()` does; does nothing where there is none of that name.
  public func cancel(run: String) {
    let conversation = calls.withLock { $0.conversations.values.first { $0.run == run } }
    conversation?.cancel()
  }

  /// The manifests of plugins: one description a plugin, those that are not trusted first. A plugin
  /// that is not trusted, that cannot be loaded, or that kills what loads it, has an error as its
  /// result.
  public func describe(plugins: [String]) async throws(InstarError) -> [PluginDescription] {
    let descriptions = Mutex<[PluginDescription]>([])
    var trusted: [String] = []
    for plugin in plugins {
      do throws(InstarError) {
        try access.requireTrusted(plugins: [plugin])
        trusted.append(plugin)
      } catch {
        descriptions.withLock {
          $0.append(PluginDescription(plugin: plugin, result: .failure(error)))
        }
      }
    }
    try await inBatch(
      trusted, as: access.identityForPlugins, request: { .describe(plugins: $0) },
      endsInDone: false
    ) { (plugin, answer) throws(InstarError) in
      let result: Result<PluginManifest, InstarError>
      switch answer {
      case .event(.described(let manifest)): result = .success(manifest)
      case .event(.failed(let error)), .died(let error): result = .failure(error)
      case .event: throw unexpected()
      }
      descriptions.withLock { $0.append(PluginDescription(plugin: plugin, result: result)) }
    }
    return descriptions.withLock { $0 }
  }

  /// The schemas that stores themselves tell, without changing them: one a store, in the order that `probe` has. A
  /// store that cannot be read has an error as its result.
  public func schemas(of stores: [String]) async throws(InstarError) -> [StoreSchema] {
    let schemas = Mutex<[StoreSchema]>([])
    let add: @Sendable (String, Result<SchemaReport, InstarError>) -> Void = { store, result in
      schemas.withLock { $0.append(StoreSchema(store: store, result: result)) }
    }
    let batches = batches(of: stores) { store, error in add(store, .failure(error)) }
    for batch in batches {
      try await inBatch(
        batch.stores, as: batch.identity, request: { .readSchema(stores: $0) }, endsInDone: false,
        limit: { [probeLimit] _ in probeLimit }
      ) { (store, answer) throws(InstarError) in
        switch answer {
        case .event(.schema(let report)) where report.store == store: add(store, .success(report))
        case .event(.failed(let error)), .died(let error): add(store, .failure(error))
        case .event: throw unexpected()
        }
      }
    }
    return schemas.withLock { $0 }
  }

  /// What stores are, without changing them: one report a store, each as soon as it is known. In
  /// order, unless stores of several owners are probed with the rights of these.
  ///
  /// - Parameters:
  ///   - plugins: The stores' states are seen from the plans of these.
  ///   - rows: Counting all takes time that grows with the store.
  public func probe(
    stores: [String], plugins: [String], rows: RowCounting,
    onReport: @escaping @Sendable (ProbeReport) -> Void
  ) async throws(InstarError) {
    try access.requireTrusted(plugins: plugins)
    let batches = batches(of: stores) { store, error in
      var report = ProbeReport(store: store, state: .unknown, reason: error.cause)
      report.error = error
      onReport(report)
    }
    // What goes wrong with the stores of one user does not keep those of others waiting.
    var failure: InstarError?
    for batch in batches {
      do throws(InstarError) {
        try await inBatch(
          batch.stores, as: batch.identity,
          request: { .probe(stores: $0, plugins: plugins, rows: rows) },
          endsInDone: true,
          limit: { [probeLimit] store in
            rows == .all ? probeLimit + Self.timeToReadAll(of: store) : probeLimit
          }
        ) { (store, answer) throws(InstarError) in
          switch answer {
          // A keeper that a store's owner has taken over speaks of his stores only.
          case .event(.probed(let report)) where report.store == store: onReport(report)
          case .died(let error):
            var report = ProbeReport(
              store: store, state: error.code == .unreadableStore ? .unreadable : .unknown,
              reason: "\(error.what): \(error.cause)")
            report.error = error.about(store: store)
            onReport(report)
          case .event(.failed(let error)): throw error
          case .event: throw unexpected()
          }
        }
      } catch {
        if error.code == .interrupted { throw error }
        failure = failure ?? error
      }
    }
    if let failure { throw failure }
  }

  /// Stores by whom they are worked on as, in the order in which each of these comes first.
  ///
  /// - Parameter refuse: Gets those that are not worked on, and why.
  private func batches(
    of stores: [String], refuse: (String, InstarError) -> Void
  ) -> [(identity: ProcessIdentity, stores: [String])] {
    var batches: [(identity: ProcessIdentity, stores: [String])] = []
    for store in stores {
      do throws(InstarError) {
        let identity = try access.identity(forStore: store)
        if let place = batches.firstIndex(where: { $0.identity == identity }) {
          batches[place].stores.append(store)
        } else {
          batches.append((identity, [store]))
        }
      } catch {
        refuse(store, error)
      }
    }
    return batches
  }

  /// What runs would do, without changing anything: one report a store, in the order that
  /// `probe` has.
  ///
  /// - Parameter adopt: The version that an unversioned store shall be taken for.
  public func plan(
    stores: [String], plugins: [String], adopt: Schema.Version?,
    onReport: @escaping @Sendable (PlanReport) -> Void
  ) async throws(InstarError) {
    try access.requireTrusted(plugins: plugins)
    let refuse: @Sendable (String, InstarError) -> Void = { store, error in
      onReport(
        PlanReport(
          store: store, probe: ProbeReport(store: store, state: .unknown, reason: error.cause),
          error: error.about(store: store, state: "unchanged")))
    }
    for batch in batches(of: stores, refuse: refuse) {
      try await inBatch(
        batch.stores, as: batch.identity,
        request: { .plan(stores: $0, plugins: plugins, adopt: adopt) }, endsInDone: true
      ) { (store, answer) throws(InstarError) in
        switch answer {
        case .event(.planned(let report)) where report.store == store: onReport(report)
        case .died(let error): refuse(store, error)
        case .event(.failed(let error)): throw error
        case .event: throw unexpected()
        }
      }
    }
  }

  /// One store to its plan's last version.
  ///
  /// Before each irreversible step the phase is brought to disk; the end is appended to the ledger
  /// (unless the store was current, and nothing was done). Where the keeper dies, the run is
  /// finished or cleared away by another one at once.
  ///
  /// - Throws: Only where nothing could be begun: no state folder, or no keeper. Every other end is
  ///   a report, with its error inside.
  public func migrate(
    _ request: MigrationRequest, onEvent: @escaping @Sendable (RunEvent) -> Void
  ) async throws(InstarError) -> RunReport {
    let stateFolder = try requireStateFolder()
    return try await inConversation(run: request.run) { (conversation) throws(InstarError) in
      try Run(
        request: request, stateFolder: stateFolder, keepers: self.keepers, access: self.access,
        conversation: conversation, onEvent: onEvent
      ).migrate()
    }
  }

  /// Finishes or clears away what processes that have died have left. Runs whose supervisor lives
  /// are left alone, also in other processes. A run that cannot be recovered stays, for the next
  /// time.
  public func recoverAll(
    onReport: @escaping @Sendable (RecoveryReport) -> Void,
    onError: @escaping @Sendable (InstarError) -> Void
  ) async throws(InstarError) {
    let stateFolder = try requireStateFolder()
    try await onOwnThread { () throws(InstarError) in
      try Recovery(keepers: self.keepers, access: self.access)
        .recoverAll(in: stateFolder, onReport: onReport, onError: onError)
    }
  }

  // MARK: - Conversations

  private func requireStateFolder() throws(InstarError) -> StateFolder {
    guard let stateFolder else {
      throw InstarError(
        .stateFolderFailed, "cannot migrate stores", cause: "there is no state folder to note it in"
      )
    }
    return stateFolder
  }

  private func inConversation<Value: Sendable>(
    run: String? = nil,
    _ body: @escaping @Sendable (Conversation) throws(InstarError) -> Value
  ) async throws(InstarError) -> Value {
    let conversation = Conversation(run: run, writeBackGrace: writeBackGrace)
    let key = ObjectIdentifier(conversation)
    let isCanceled = calls.withLock { calls in
      calls.conversations[key] = conversation
      return calls.areCanceled
    }
    defer { calls.withLock { $0.conversations[key] = nil } }
    if isCanceled { conversation.cancel() }
    let result: Result<Value, InstarError> = await withTaskCancellationHandler {
      do throws(InstarError) {
        return .success(
          try await onOwnThread { () throws(InstarError) in try body(conversation) })
      } catch {
        return .failure(error)
      }
    } onCancel: {
      conversation.cancel()
    }
    return try result.get()
  }

  private enum Answer {
    case event(KeeperEvent)
    /// The keeper died over this one.
    case died(InstarError)
  }

  /// Asks for something about many subjects, of which each has one answer, in order. A keeper that dies over one of
  /// them is replaced, and the rest is asked of the next, once that has shown that it lives without a subject. One that
  /// has no answer about a subject within the limit hangs: it is ended, and the rest goes on in the same way.
  private func inBatch(
    _ subjects: [String], as identity: ProcessIdentity,
    request: @escaping @Sendable ([String]) -> KeeperRequest,
    endsInDone: Bool,
    limit: @escaping @Sendable (String) -> Duration? = { _ in nil },
    onAnswer: @escaping @Sendable (String, Answer) throws(InstarError) -> Void
  ) async throws(InstarError) {
    guard !subjects.isEmpty else { return }
    try await inConversation { (conversation) throws(InstarError) in
      var rest = subjects[...]
      var hasDied = false
      while !rest.isEmpty {
        if conversation.isCanceled { throw interrupted() }
        let session = try self.keepers.take(as: identity)
        do throws(InstarError) {
          try conversation.begin(session)
          if hasDied { try Self.requireLife(session) }
        } catch {
          session.kill()
          throw conversation.isCanceled ? interrupted() : error
        }
        var hangs = false
        do throws(InstarError) {
          try session.send(request(Array(rest)))
          while let subject = rest.first {
            let limit = limit(subject)
            guard let event = try Self.nextEvent(session, within: limit) else {
              hangs = true
              throw Self.overdue(limit)
            }
            try onAnswer(subject, .event(event))
            rest.removeFirst()
          }
          if endsInDone, try Self.nextEvent(session) != .done { throw unexpected() }
          self.keepers.giveBack(session)
        } catch {
          if hangs { session.abandon() } else { session.kill() }
          if conversation.isCanceled { throw interrupted() }
          hasDied = true
          guard hangs || error.code == .keeperDied, let subject = rest.first else { throw error }
          rest.removeFirst()
          let what = hangs ? "cannot read '\(subject)'" : "the keeper has ended over '\(subject)'"
          try onAnswer(subject, .died(error.about(what)))
        }
      }
    }
  }

  /// A keeper that cannot even say that there is nothing to probe is not killed by any subject.
  private static func requireLife(_ session: KeeperSession) throws(InstarError) {
    try session.send(.probe(stores: [], plugins: [], rows: .none))
    guard try nextEvent(session) == .done else { throw unexpected() }
  }

  /// Without a deadline there is always an event, or an error.
  static func nextEvent(_ session: KeeperSession) throws(InstarError) -> KeeperEvent {
    while true {
      if let event = try session.next() { return event }
    }
  }

  /// - Returns: `nil` where there was no event within the limit.
  private static func nextEvent(
    _ session: KeeperSession, within limit: Duration?
  ) throws(InstarError) -> KeeperEvent? {
    guard let limit else { return try nextEvent(session) }
    return try session.next(deadline: .now + limit)
  }

  private static func overdue(_ limit: Duration?) -> InstarError {
    InstarError(
      .unreadableStore, "cannot go on with a keeper",
      cause:
        "reading it did not come to an end within \(limit.map(DurationText.format) ?? "its time")",
      state: "unchanged", next: "see whether the disk or the server that the file lies on answers")
  }

  /// What counting all rows of a store may take, on a disk that reads a megabyte in a second.
  private static func timeToReadAll(of store: String) -> Duration {
    var status = stat()
    return lstat(store, &status) == 0 ? .seconds(status.st_size >> 20) : .zero
  }
}

/// What a plugin carries, or why it cannot be used.
public struct PluginDescription: Sendable {
  public var plugin: String
  public var result: Result<PluginManifest, InstarError>

  public init(plugin: String, result: Result<PluginManifest, InstarError>) {
    self.plugin = plugin
    self.result = result
  }
}

/// What a store tells of its schema, or why it cannot be read.
public struct StoreSchema: Sendable {
  public var store: String
  public var result: Result<SchemaReport, InstarError>

  public init(store: String, result: Result<SchemaReport, InstarError>) {
    self.store = store
    self.result = result
  }
}

func unexpected() -> InstarError {
  InstarError(
    .protocolViolation, "cannot go on with the keeper",
    cause: "its answer does not belong to what it was asked",
    next: "install the parts of Instar in the same version")
}

func interrupted() -> InstarError {
  InstarError(
    .interrupted, "the work was ended before it was done", cause: "it was canceled",
    state: "unchanged", next: "start it again")
}
