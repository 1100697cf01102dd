import Foundation
public import InstarLinux
public import InstarSchema
public import InstarWire
import Synchronization

/// The operations of instarctl and instard. Starts keepers, answers their questions, and alone writes the state folder.
///
/// It opens no store and loads no plugin, so neither a hostile file nor a trap in a plugin reaches its process. Calls
/// may run at the same time; each has keepers of its own. A call's handlers run one after the other, on a thread that
/// may block. Cancelling a task has the effect of `cancel()` on its call.
public final class Supervisor: Sendable {
  public let installation: Installation
  public let stateFolder: StateFolder?
  let keepers: KeeperPool
  let access: KeeperAccess
  private let cutoverGrace: Duration
  let probeLimit: Duration
  /// Asks about stores: a call without an answer would keep those of other file systems waiting for ever.
  let reader: FileReader
  /// The most time for the work on one backup that is not very large; `nil` without a limit besides that for its size.
  private let backupLimit: Duration?
  /// The daemon works on a watch's backups of all owners one after the other: an owner's slow disk must not stop that.
  private static let backupLimitOfDaemon = Duration.seconds(3600)
  private let openConversations = Mutex(OpenConversations())

  private struct OpenConversations {
    var conversations: [ObjectIdentifier: Conversation] = [:]
    /// Stays set, so that it also ends calls that have not registered yet.
    var areCanceled = false
  }

  /// - Parameters:
  ///   - stateFolder: Needed by `migrate`, `restore` and `recover`, which write stores. `probe` and `plan` read the
  ///     holds in it.
  ///   - rights: The user whose rights keepers have.
  ///   - cutoverGrace: How long `cancel` waits for a keeper in its cutover.
  ///   - probeLimit: The time limit for probing one store; more for a large store if all rows are counted.
  public convenience init(
    installation: Installation, stateFolder: StateFolder?, rights: KeeperRights = .caller,
    cutoverGrace: Duration = .seconds(900), probeLimit: Duration = .seconds(60)
  ) {
    self.init(
      installation: installation, stateFolder: stateFolder, rights: rights,
      cutoverGrace: cutoverGrace, probeLimit: probeLimit,
      // It may notice only after twice its patience that there is no answer.
      reader: FileReader(patience: probeLimit / 2))
  }

  /// The same, for a program that has asked about stores before.
  ///
  /// - Parameter reader: Knows what did not answer then.
  package init(
    installation: Installation, stateFolder: StateFolder?, rights: KeeperRights,
    cutoverGrace: Duration = .seconds(900), probeLimit: Duration = .seconds(60), reader: FileReader
  ) {
    self.installation = installation
    self.stateFolder = stateFolder
    access = KeeperAccess(rights)
    self.cutoverGrace = cutoverGrace
    self.probeLimit = probeLimit
    self.reader = reader
    backupLimit = rights == .storeOwner ? Self.backupLimitOfDaemon : nil
    keepers = KeeperPool(
      installation: installation, opensOwnStoresOnly: rights == .storeOwner)
  }

  /// How many keepers ended before they finished their work, or were killed because they hung. Another keeper replaced
  /// each.
  public var lostKeepers: Int { keepers.killedCount }

  /// Has keepers load only plugins that one of the keys signed; `nil` lets them load all. A call in progress keeps the
  /// keys with which it began.
  public func requireSignatures(by keys: [TrustedKeys.Key]?) { keepers.trust(keys) }

  /// Ends every call, also those started later, and may be called from any thread.
  ///
  /// A run before its cutover fails with the code `interrupted` and the store unchanged. A run in its cutover may
  /// finish for `cutoverGrace`; then its keeper hangs and is killed, and another one recovers the run. A recovery may
  /// finish within seconds, or within half of `probeLimit` if it waits for an answer of its file system; then it is
  /// left to the next call.
  public func cancel() {
    let conversations = openConversations.withLock { open in
      open.areCanceled = true
      return Array(open.conversations.values)
    }
    for conversation in conversations { conversation.cancel() }
  }

  /// Migrates one store to the last version of its plan.
  ///
  /// Each phase is on disk before the keeper takes the step that it announces. The report is appended to the ledger,
  /// except for a store that was current. If the keeper dies, another one recovers the run at once.
  ///
  /// An earlier run of the store that was cut off is recovered first. If that fails, this run does not start.
  ///
  /// A rehearsal (`MigrationRequest.rehearses`) never changes the store, is not stopped by a hold, and has no line in
  /// the ledger.
  ///
  /// - Parameters:
  ///   - folder: The folder for a copy of the backup, which `addingCopy` or `makeCopies` makes afterwards.
  ///   - priority: Of the keeper that makes the run, and of its worker.
  ///   - onRecovery: Called with each run of the store that was recovered first.
  /// - Throws: If the run cannot start, without a state folder or keeper. Any other failure is the error of the report.
  public func migrate(
    _ request: MigrationRequest, copyingBackupTo folder: BackupFolder? = nil,
    priority: ProcessPriority = ProcessPriority(),
    onRecovery: @escaping @Sendable (RecoveryReport) -> Void = { _ in },
    onEvent: @escaping @Sendable (RunEvent) -> Void
  ) async throws(InstarError) -> RunReport {
    try await perform(
      .migrate(request), copyingBackupTo: folder, priority: priority, onRecovery, onEvent)
  }

  /// Brings a store back to a backup, as a run of its own: each phase is on disk first, the state that the store is in
  /// becomes a backup, and the report is appended to the ledger. A hold then keeps the store from being migrated again.
  ///
  /// An earlier run of the store that was cut off is recovered first. If that fails, this run does not start.
  ///
  /// - Parameters:
  ///   - user: Who asks for it, for the hold.
  ///   - onRecovery: Called with each run of the store that was recovered first.
  /// - Throws: If the run cannot start, without a state folder or keeper. Any other failure is the error of the report.
  public func restore(
    _ request: RestoreRequest, by user: String,
    onRecovery: @escaping @Sendable (RecoveryReport) -> Void = { _ in },
    onEvent: @escaping @Sendable (RunEvent) -> Void
  ) async throws(InstarError) -> RunReport {
    try await perform(.restore(request, by: user), onRecovery, onEvent)
  }

  private func perform(
    _ request: RunRequest, copyingBackupTo folder: BackupFolder? = nil,
    priority: ProcessPriority = ProcessPriority(),
    _ onRecovery: @escaping @Sendable (RecoveryReport) -> Void,
    _ onEvent: @escaping @Sendable (RunEvent) -> Void
  ) async throws(InstarError) -> RunReport {
    let stateFolder = try requireStateFolder()
    return try await inConversation { (conversation) throws(InstarError) in
      try Run(
        request: request, ledgerPath: try self.answeredPath(of: request.store),
        stateFolder: stateFolder, keepers: self.keepers,
        recovery: self.recovery(conversation), conversation: conversation,
        copyTo: folder, priority: priority, onEvent: onEvent
      ).perform(onRecovery: onRecovery)
    }
  }

  /// Verifies, copies or removes one backup, with the rights of the store's owner. No store is opened.
  ///
  /// - Returns: The copy that is kept, if that was the work.
  /// - Throws: `missingBackup`, `damagedBackup`, or why the work failed; `unsafePath` where another user may have
  ///   chosen the backup's path.
  @discardableResult
  public func handle(
    _ backup: BackupReference, _ work: BackupWork
  ) async throws(InstarError) -> BackupCopy? {
    try access.requireTrusted(backup)
    let identity =
      switch work {
      case .copy(let target), .keepCopy(let target):
        try access.identity(forCopyOf: backup.store, to: target)
      case .verify, .remove, .removeRemains: try access.identity(forRecoveryOf: backup.store)
      }
    return try await handle(backup, work, as: identity)
  }

  /// - Parameter identity: The user of the keeper, who may work on this backup.
  @discardableResult
  func handle(
    _ backup: BackupReference, _ work: BackupWork, as identity: ProcessIdentity
  ) async throws(InstarError) -> BackupCopy? {
    let copied = Mutex<BackupCopy?>(nil)
    do throws(InstarError) {
      try await inBatch(
        [backup.path], as: identity, request: { _ in .backup(backup, work) }, endsInDone: false,
        limit: { [probeLimit, backupLimit] _ in
          let time = Self.timeToRead(backup.bytesToRead)
          let limit = probeLimit + time * 3
          // At 10 MiB per second, where that takes longer.
          return backupLimit.map { min(max($0, time / 10), limit) } ?? limit
        }
      ) { (_, reply) throws(InstarError) in
        switch reply {
        case .event(.done): return
        case .event(.copied(let copy)): copied.withLock { $0 = copy }
        case .event(.failed(let error)), .died(let error): throw error
        case .event: throw unexpectedEvent()
        }
      }
    } catch {
      throw error.code == .interrupted ? interrupted(work, backup) : error
    }
    return copied.withLock { $0 }
  }

  /// Returns the stores with runs that were cut off or are in progress, the store of the oldest run first. Removes
  /// files that killed processes left in the phase journal.
  ///
  /// - Returns: `unreadable` has one error for each phase record that cannot be read.
  public func storesWithOpenRuns() throws(InstarError) -> (
    stores: [String], unreadable: [InstarError]
  ) {
    let (records, unreadable) = try openRuns()
    var known: Set<String> = []
    return (records.map(\.store).filter { known.insert($0).inserted }, unreadable)
  }

  /// The same, with the last phase of each run.
  func openRuns() throws(InstarError) -> (records: [PhaseRecord], unreadable: [InstarError]) {
    let stateFolder = try requireStateFolder()
    try stateFolder.removeLeftovers()
    return try stateFolder.openPhases()
  }

  /// The stores of runs that this process supervised, and that stayed open when they ended: the runs could not be
  /// recovered, or their reports not be written to the ledger.
  public var storesWithRunsLeftOpen: [String] {
    stateFolder.map { Set($0.storesLeftOpen).sorted() } ?? []
  }

  /// The path under which the ledger has the runs of a store.
  public func ledgerPath(of store: String) -> StorePath { access.ledgerPath(of: store) }

  /// Recovers the runs of one store whose supervisors have ended. Runs with a live supervisor in any process are left
  /// alone. A run that cannot be recovered stays for the next call.
  public func recover(
    store: String, onReport: @escaping @Sendable (RecoveryReport) -> Void
  ) async throws(InstarError) {
    let stateFolder = try requireStateFolder()
    try await inConversation { (conversation) throws(InstarError) in
      try self.recovery(conversation).recover(
        store: store, recordedAs: try self.answeredPath(of: store), in: stateFolder,
        onReport: onReport)
    }
  }

  /// `ledgerPath`, for calls that others wait for.
  ///
  /// - Throws: `unreadableStore` without an answer.
  private func answeredPath(of store: String) throws(InstarError) -> StorePath {
    let answers = reader.answers(about: [store]) { [access] in access.ledgerPath(of: $0) }
    guard let path = answers.first else {
      throw Self.unanswered(store, within: reader.patience).about(state: "unchanged")
    }
    return path
  }

  private func recovery(_ conversation: Conversation) -> SupervisedRecovery {
    SupervisedRecovery(
      keepers: keepers, access: access, limit: probeLimit, reader: reader,
      conversation: conversation)
  }

  // MARK: - Conversations

  private func requireStateFolder() throws(InstarError) -> StateFolder {
    guard let stateFolder else {
      throw InstarError(
        .stateFolderFailed, "cannot change stores", cause: "no state folder was given",
        next: "name one with --state-dir")
    }
    return stateFolder
  }

  private func inConversation<Value: Sendable>(
    _ body: @escaping @Sendable (Conversation) throws(InstarError) -> Value
  ) async throws(InstarError) -> Value {
    let conversation = Conversation(cutoverGrace: cutoverGrace)
    let key = ObjectIdentifier(conversation)
    let isCanceled = openConversations.withLock { open in
      open.conversations[key] = conversation
      return open.areCanceled
    }
    defer { openConversations.withLock { $0.conversations[key] = nil } }
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

  enum Reply {
    case event(KeeperEvent)
    /// The keeper died while it worked on this subject.
    case died(InstarError)
  }

  /// Sends one request about many subjects, and receives one answer for each, in order.
  ///
  /// If the keeper dies, another one gets the rest of the subjects, after it has answered a request without a subject.
  /// A keeper that sends no answer within the limit hangs: it is killed, and replaced in the same way.
  func inBatch(
    _ subjects: [String], as identity: ProcessIdentity,
    request: @escaping @Sendable ([String]) -> KeeperRequest,
    endsInDone: Bool, endsAtDeath: Bool = false,
    limit: @escaping @Sendable (String) -> Duration? = { _ in nil },
    onReply: @escaping @Sendable (String, Reply) throws(InstarError) -> Void
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
          if hasDied { try self.requireLife(session) }
        } catch {
          session.kill()
          throw conversation.isCanceled ? interrupted() : error
        }
        var hangs = false
        do throws(InstarError) {
          try session.send(request(Array(rest)))
          while let subject = rest.first {
            let limit = limit(subject)
            let event = try session.next(
              deadline: limit.map { .now + $0 },
              pause: rest.count < Self.manySubjects ? .zero : Self.pauseForMany)
            guard let event else {
              hangs = true
              throw Self.overdueReading(limit ?? self.probeLimit)
            }
            try onReply(subject, .event(event))
            rest.removeFirst()
          }
          if endsInDone { try self.requireDone(session) }
          self.keepers.giveBack(session)
        } catch {
          session.kill()
          if conversation.isCanceled { throw interrupted() }
          hasDied = true
          guard hangs || [.keeperDied, .timeLimit].contains(error.code), let subject = rest.first
          else { throw error }
          rest.removeFirst()
          try onReply(subject, .died(error.about("cannot read '\(subject)'")))
          if endsAtDeath { return }
        }
      }
    }
  }

  /// A keeper needs longer for this number of answers than a pause lasts, so pauses do not delay such a batch
  /// noticeably.
  private static let manySubjects = 100
  private static let pauseForMany = Duration.milliseconds(1)

  /// Checks that a new keeper answers at all. If it does not, the reason is not in a subject.
  private func requireLife(_ session: KeeperSession) throws(InstarError) {
    try session.send(.probe(stores: [], plans: [], rows: .none, findsHolders: false))
    try requireDone(session)
  }

  /// Waits for the end of a batch. One that hangs there must not keep the next batch from being sent.
  private func requireDone(_ session: KeeperSession) throws(InstarError) {
    guard let event = try session.next(deadline: .now + probeLimit) else {
      throw Self.overdueReading(probeLimit)
    }
    guard event == .done else { throw unexpectedEvent() }
  }

  /// The error of a keeper that hangs. Its state is `nil`, because the keeper may have been in a cutover.
  static func overdue(_ limit: Duration) -> InstarError {
    InstarError(
      .unreadableStore, "cannot read the store",
      cause: "the keeper did not finish within \(DurationText.format(limit))",
      next: "check that the disk or file server of the store responds")
  }

  /// The same for a keeper that only reads stores.
  private static func overdueReading(_ limit: Duration) -> InstarError {
    overdue(limit).about(state: "unchanged")
  }

  /// The error of a store about which its file system gives no answer. A keeper that asked it would hang. Its state is
  /// `nil`, because a run may have been in its cutover.
  static func unanswered(_ store: String, within limit: Duration) -> InstarError {
    InstarError(
      .unreadableStore, "cannot read '\(store)'", store: store,
      cause: "its file system did not answer within \(DurationText.format(limit))",
      next: "check that the disk or file server of the store responds")
  }

  /// The same where the store was only read.
  package static func unansweredReading(_ store: String, within limit: Duration) -> InstarError {
    var error = unanswered(store, within: limit).about(state: "unchanged")
    error.code = .timeLimit
    return error
  }

  /// `timeToReadAll`; zero for a store whose file system does not answer.
  func answeredTimeToReadAll(of store: String) -> Duration {
    reader.answers(about: [store], Self.timeToReadAll).first ?? .zero
  }

  /// The time to count all rows of a store, also those in its log.
  static func timeToReadAll(of store: String) -> Duration {
    let sizes = [store, SideFile.log.path(of: store)].map { file in
      Int64(stat(of: file)?.st_size ?? 0)
    }
    // Their owner may make sparse files of any size.
    return timeToRead(sizes.saturatingSum)
  }

  /// The time to read bytes from a disk that reads 1 MiB per second.
  static func timeToRead(_ bytes: Int64) -> Duration { .seconds(bytes >> 20) }
}

/// The manifest of a plugin, or the reason why it cannot be used.
public typealias PluginDescription = (
  plugin: String, result: Result<PluginManifest, InstarError>
)

func unexpectedEvent() -> InstarError {
  InstarError(
    .protocolViolation, "cannot use the keeper's reply",
    cause: "the keeper's reply does not match the request",
    next: "install the same version of all Instar packages")
}

/// Work on a backup has no cutover, and does not change the store.
private func interrupted(_ work: BackupWork, _ backup: BackupReference) -> InstarError {
  let verb =
    switch work {
    case .verify: "verify"
    case .copy, .keepCopy: "copy"
    case .remove, .removeRemains: "remove"
    }
  return InstarError(
    .interrupted, "cannot \(verb) the backup of run \(backup.run)", store: backup.store,
    cause: "interrupted before the end of this work", state: "unchanged",
    next: CommandText.repetition)
}

func interrupted() -> InstarError {
  InstarError(
    .interrupted, "cannot finish the request", cause: "interrupted before the cutover",
    state: "unchanged", next: CommandText.repetition)
}
