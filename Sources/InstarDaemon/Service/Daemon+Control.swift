import Foundation
import Glibc
import InstarConfiguration
import InstarSchema
import InstarSupervisor
import InstarWire

/// Answers the calls of clients of the control socket.
extension Daemon {
  mutating func answer(_ request: ControlRequest) {
    do throws(InstarError) {
      request.reply(try answer(to: request))
    } catch {
      request.reply(.failed(error))
    }
  }

  private mutating func answer(
    to request: ControlRequest
  ) throws(InstarError) -> ControlRequest.Reply {
    let client = request.client
    switch request.method {
    case .status: return .status(recentStatus(for: client))
    case .stores: return .stores(queue.stores(of: client.visibleOwner))
    case .ownsStore: return .ownsStore(queue.storeCount(ofOwner: client.user) > 0)
    case .store(let paths):
      let now = ContinuousClock.now
      return .store(
        paths.filter { client.maySee(storeOf: queue.owner(of: $0)) }
          .compactMap { queue.status(of: $0, at: now, isAdmin: client.isAdmin) })
    case .retry(let stores):
      lastStatuses = [:]
      return .retried(try retry(stores, for: client))
    case .rescan:
      try requireAdmin(client, to: "rescan the watched folders")
      lastStatuses = [:]
      rescanNow()
    case .pause(let why, let plan):
      let pauses = plan.map { "halt the rollout of '\($0)'" } ?? "pause instard"
      try requireAdmin(client, to: pauses)
      if let why { try Hold.requireShort(why, "cannot \(pauses)") }
      let pause = Manager.Pause(by: client.name, since: Date().timeIntervalSince1970, why: why)
      if let plan { try order(.halt(pause), plan, "halt") } else { try setPause(pause) }
    case .resume(let plan):
      try requireAdmin(client, to: plan.map { "resume the rollout of '\($0)'" } ?? "resume instard")
      if let plan { try order(.resume, plan, "resume") } else { try setPause(nil) }
    case .approve(let plan, let stores): try approve(plan, stores, for: client)
    case .permit(let new): return .permitted(try permit(new, for: client))
    case .checkWatched(let act, let store, let path):
      try requireWatched(by: client, to: act, store, path)
    case .holdsChanged(let stores):
      lastStatuses = [:]
      followHolds(of: stores)
    }
    return .done
  }

  private func requireAdmin(_ client: ControlClient, to act: String) throws(InstarError) {
    guard !client.isAdmin else { return }
    throw InstarError(
      .notPermitted, "cannot \(act)",
      cause: "\(client.name) is neither root nor a member of the group \(ControlClient.adminGroup)",
      next: "run the command as root; or add the user to the group, and log in again: "
        + "adduser \(client.login) \(ControlClient.adminGroup)")
  }

  /// Refuses a store that instard does not watch.
  ///
  /// A new store is in a watched folder before a scan has found it or its new owner. `ClientRecords` reads the owner
  /// from the file.
  private func requireWatched(
    by client: ControlClient, to act: String, _ store: String, _ path: StorePath
  ) throws(InstarError) {
    let paths = configuration.watchedPaths(of: [path.text], realFolders: folders.realFolders)
    let isWatched = ([store] + paths).contains {
      queue.state(of: $0) != nil || configuration.watch(ofStore: $0) != nil
    }
    guard !isWatched else { return }
    throw client.isAdmin ? Self.unknownStore(store, act) : client.refusal(to: act, store)
  }

  // MARK: Seeing

  private func mayUse(_ store: String, _ client: ControlClient) -> Bool {
    queue.state(of: store) != nil && client.maySee(storeOf: queue.owner(of: store))
  }

  /// Computing a status reads all stores, so a client that asks at short intervals gets the same one.
  private mutating func recentStatus(for client: ControlClient) -> Manager.Status {
    let now = ContinuousClock.now
    lastStatuses = lastStatuses.filter { now - $0.value.at < Self.statusInterval }
    if let last = lastStatuses[client] { return last.status }
    let status = managerStatus(for: client)
    lastStatuses[client] = (now, status)
    return status
  }

  private static var statusInterval: Duration { .milliseconds(500) }

  private func managerStatus(for client: ControlClient) -> Manager.Status {
    let now = ContinuousClock.now
    let seen = queue.overview(
      of: client.visibleOwner, failures: Manager.Status.failureLimit, at: now)
    var status = Manager.Status(
      version: Release.version, pid: getpid(), startedAt: startedAt, phase: phase, pause: pause,
      folders: managerFolders,
      plugins: plugins.usable, refusedPlugins: plugins.refused, stores: seen.stores,
      states: seen.states,
      activities: seen.activities,
      rollouts: client.isAdmin ? queue.rolloutStatuses(at: now) : [],
      runs: seen.running.map { runsInProgress.run(on: $0) }, failures: seen.failures)
    status.plans = plugins.planNames.sorted()
    status.stateFolder = configuration.stateFolder
    status.pluginFolders = configuration.pluginFolders
    // A client without a store that is behind waits for nothing.
    if [Manager.Activity.pending, .queued, .running].contains(where: {
      seen.activities[$0.rawValue] != nil
    }) {
      status.secondsLeft = secondsLeft(at: now)
    }
    return status
  }

  /// How long it takes to migrate all stores that are behind; `nil` where that is not known.
  private func secondsLeft(at now: ContinuousClock.Instant) -> Double? {
    // The last runs may have had small stores, and one in progress a large one.
    queue.timeLeft(at: now).map { max($0.inSeconds, runsInProgress.secondsLeft ?? 0).rounded(.up) }
  }

  private var managerFolders: [Manager.Folder] {
    let unreadable = folders.unreadable
    return configuration.watches.map { watch in
      var folder = Manager.Folder(folder: watch.path, error: unreadable[watch.path])
      folder.warning = plugins.missingPlans[watch.path]?.cause
      if watch.window != nil {
        folder.windowIsOpen = windows.states[watch.path]?.isOpen ?? false
        folder.windowChangesAt = windows.states[watch.path]?.changesAt
      }
      return folder
    }
  }

  // MARK: Steering

  /// - Returns: What is known now about the stores, and why some of them get no attempt now.
  private mutating func retry(
    _ stores: [String], for client: ControlClient
  ) throws(InstarError) -> Manager.RetryReply {
    if let unknown = stores.first(where: { !mayUse($0, client) }) {
      var error = Self.unknownStore(unknown, "retry")
      if stores.count > 1 { error.cause += "; instard retries none of the \(stores.count) stores" }
      throw error
    }
    let wanted =
      stores.isEmpty
      ? queue.stores(of: client.visibleOwner).filter(queue.waitsForRetry).sorted() : stores
    let now = ContinuousClock.now
    var reasons: [String: String] = [:]
    for store in wanted {
      reasons[store] = queue.reasonNotToRetry(store, isAdmin: client.isAdmin, at: now) { hold in
        // Others may not read the state folder, and release their stores through instard.
        let mayReadFolder = [0, geteuid()].contains(client.user)
        return mayReadFolder
          ? supervisor.stateFolder?.releaseCommand(of: hold) ?? hold.releaseCommand
          : hold.releaseCommand
      }
    }
    // A store that waits for an order has its attempt as soon as that comes; a damaged one needs another retry.
    let retried = wanted.filter { reasons[$0] == nil || queue.waitsForRetry($0) }
      .filter { queue.canRetry($0, at: now) }
    if !retried.isEmpty { feed([.retryWanted(retried, byOperator: client.isAdmin)]) }
    var reply = Manager.RetryReply(stores: [], others: [])
    for store in wanted {
      guard var status = queue.status(of: store, at: .now, isAdmin: client.isAdmin) else {
        continue
      }
      status.notRetried = reasons[store]
      if status.notRetried == nil {
        reply.stores.append(status)
      } else {
        reply.others?.append(status)
      }
    }
    return reply
  }

  /// Applies an order to the rollout of a plan. It is on disk when this returns.
  private mutating func order(
    _ order: StoreQueue.RolloutOrder, _ plan: String, _ verb: String
  ) throws(InstarError) {
    lastStatuses = [:]
    let what = "cannot \(verb) the rollout of '\(plan)'"
    guard keepsRollouts else {
      throw InstarError(
        .stateFolderFailed, what, cause: "the record of the rollouts cannot be read",
        next: "to see why, and what to do, run: journalctl -t instard -x -n 5 INSTAR_EVENT=problem")
    }
    guard queue.knowsPlan(plan) else {
      throw InstarError(
        .noPlan, what,
        cause: plugins.planNames.contains(plan)
          ? "no watched store belongs to a plan of this name"
          : PlanSelection.reason(
            forMissing: plan, in: "plugin or store",
            known: plugins.planNames.union(queue.rolloutStatuses(at: .now).map(\.plan)),
            refused: plugins.refused.map(\.plugin)),
        next: "to see the plan of each store, run: instarctl stores --json")
    }
    let rollouts = queue.rolloutStatuses(at: .now).filter { $0.plan == plan }
    switch order {
    case .halt: break
    case .resume:
      // Nothing to do, as with a resume without a pause.
      if rolloutsAreOnDisk, rollouts.allSatisfy({ $0.halt == nil }) { return }
    case .approve(let stores):
      guard rollouts.isEmpty else {
        if rolloutsAreOnDisk, queue.hasApproved(stores, plan) { return }
        break
      }
      if let store = stores.first {
        throw InstarError(
          .wrongUsage, "cannot approve the migration of '\(store)'", store: store,
          cause: "the store does not wait for an approval",
          next: "to see what instard does with it, run: instarctl stores")
      }
      throw InstarError(
        .wrongUsage, what, cause: "none of its stores waits for an approval",
        next: "to see the rollouts, run: instarctl status")
    }
    feed([.rolloutOrder(plan: plan, order)])
    // What the order changed was recorded, unless that failed.
    guard !rolloutsAreOnDisk else { return }
    do throws(InstarError) {
      try keepRollouts()
    } catch {
      throw InstarError(
        error.code, error.what,
        cause: "\(error.cause); the order holds only until instard restarts", next: error.next)
    }
  }

  private mutating func approve(
    _ plan: String?, _ stores: [String], for client: ControlClient
  ) throws(InstarError) {
    if stores.isEmpty, let plan {
      // Also of stores that other users own.
      try requireAdmin(client, to: "approve all stores of '\(plan)'")
      return try order(.approve([]), plan, "approve")
    }
    guard !stores.isEmpty else {
      throw InstarError(
        .wrongUsage, "cannot approve migrations", cause: "neither a plan nor a store is named",
        next: "run: instarctl approve --plan NAME")
    }
    var storesOfPlan: [String: [String]] = [:]
    for store in stores {
      let act = "approve the migration of"
      if !client.maySee(storeOf: queue.owner(of: store)) { throw client.refusal(to: act, store) }
      guard let status = queue.status(of: store, at: .now) else {
        throw Self.unknownStore(store, act)
      }
      guard let known = status.plan, plan == nil || plan == known else {
        throw InstarError(
          .noPlan, "cannot approve the migration of '\(store)'", store: store,
          cause: status.plan.map { "the store belongs to plan '\($0)'" }
            ?? "instard has not found a plan for the store",
          next: "to see what instard knows of it, run: instarctl stores")
      }
      storesOfPlan[known, default: []].append(store)
    }
    for (plan, stores) in storesOfPlan { try order(.approve(stores), plan, "approve") }
  }

  /// Applies the permissions of instar-coordinator.
  ///
  /// They are not on disk: after a restart no run starts before instar-coordinator has sent them again.
  private mutating func permit(
    _ new: Manager.PermitParameters, for client: ControlClient
  ) throws(InstarError) -> Manager.PermitReply {
    guard client.mayPermit else {
      throw InstarError(
        .notPermitted, "cannot permit runs",
        cause: "\(client.name) is neither root nor the user \(ControlClient.coordinatorUser)",
        next: "let the service do it: systemctl start instar-coordinator")
    }
    guard configuration.coordinator != nil else {
      throw InstarError(
        .wrongUsage, "cannot permit runs",
        cause: "instard needs no permission: its configuration has no 'coordinator'",
        next: "add 'coordinator' to instard.yml, then run: systemctl reload instard")
    }
    feed([.permitted(new)])
    let rollouts = queue.rolloutStatuses(at: .now)
    return Manager.PermitReply(
      isCounted: queue.areAllProbed, running: queue.runningCounts, pause: pause,
      rollouts: rollouts,
      failures: rollouts.flatMap(\.failures).compactMap { queue.status(of: $0, at: .now) })
  }

  private static func unknownStore(_ store: String, _ act: String) -> InstarError {
    InstarError(
      .missingStore, "cannot \(act) '\(store)'", store: store,
      cause: "instard does not know this store",
      next: "list the stores that it knows: instarctl stores")
  }

  /// Continues the rollouts of an earlier daemon.
  mutating func readRollouts() {
    do throws(InstarError) {
      let recorded = try supervisor.stateFolder?.rollouts() ?? []
      queue.restore(
        recorded.map { record, runs in
          let paths = configuration.watchedPaths(
            of: runs.map(\.store), realFolders: folders.realFolders)
          return (
            record,
            runs: zip(runs, paths).map { run, path in
              var run = run
              run.store = path
              return run
            }
          )
        }, at: .now)
    } catch {
      // A rollout may have been halted. So no run starts, as with an unreadable pause.
      keepsRollouts = false
      if pause == nil {
        let why = "\(error.what): \(error.cause)"
        follow(Manager.Pause(by: "instard", since: Date().timeIntervalSince1970, why: why))
      }
      log.post(.problem(error))
    }
  }

  /// Records the rollouts. They are on disk when this returns.
  mutating func keepRollouts() throws(InstarError) {
    guard keepsRollouts else { return }
    rolloutsAreOnDisk = false
    try supervisor.stateFolder?.setRollouts(queue.rolloutRecords(at: .now))
    rolloutsAreOnDisk = true
  }

  /// Writes the order of an operator to disk, and then obeys it.
  private mutating func setPause(_ pause: Manager.Pause?) throws(InstarError) {
    guard let stateFolder = supervisor.stateFolder else { return }
    if let pause {
      try stateFolder.setPause(pause)
    } else {
      try stateFolder.endPause()
      // By this order the operator accepts the loss of the unreadable record.
      keepsRollouts = true
    }
    follow(pause)
    log.post(.pauseChanged(pause))
  }

  /// Reads the order that an earlier daemon left. An unreadable order counts as a pause: no run starts.
  mutating func readPause() {
    do throws(InstarError) {
      guard let pause = try supervisor.stateFolder?.pause() else { return }
      follow(pause)
      log.post(.pauseChanged(pause))
    } catch {
      follow(
        Manager.Pause(
          by: "instard", since: Date().timeIntervalSince1970, why: "\(error.what): \(error.cause)"))
      log.post(.problem(error))
    }
  }

  private mutating func follow(_ pause: Manager.Pause?) {
    self.pause = pause
    lastStatuses = [:]
    feed([.pauseChanged(isPaused: pause != nil)])
  }
}
