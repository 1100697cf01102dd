extension Manager {
  /// The name of the one error of the interface.
  public static let failed = "\(interface).Failed"

  /// The interface in Varlink's language.
  public static let description = """
    # Shows and controls instard, the daemon that migrates stores. instard(8) explains who may call what.
    interface io.instar.Manager

    # What went wrong, as in all JSON of Instar. instarctl(1) lists the codes.
    type Error (
      code: string,
      what: string,
      store: ?string,
      stage: ?string,
      cause: string,
      state: ?string,
      next: ?string,
      rows: ?Rows,
      provesDamage: ?bool
    )

    # The rows that an error is about: how many, and the keys of the first ones.
    type Rows (
      count: int,
      keys: []string
    )

    # How far a long piece of work is: what is counted, how many are done of how many, and how fast.
    type Progress (
      what: string,
      done: int,
      total: ?int,
      perSecond: float,
      secondsLeft: ?float
    )

    # A run in progress. The other fields are set while a stage takes long.
    type Run (
      store: string,
      run: ?string,
      stage: ?string,
      progress: ?Progress
    )

    # A watched folder, and why it cannot be watched. With a time window: whether runs of its stores may start now, and
    # when that changes, in seconds since 1970. 'warning' says that the watch names a plan that no usable plugin has.
    type Folder (
      folder: string,
      error: ?Error,
      windowIsOpen: ?bool,
      windowChangesAt: ?float,
      warning: ?string
    )

    # An operator's order to start no run. 'since' is in seconds since 1970.
    type PauseOrder (
      by: string,
      since: float,
      why: ?string
    )

    # An order to leave a store alone. It belongs to the path and to the file of then; 'createdNanoseconds' and 'since'
    # count from 1970. 'run' is the restore that placed it.
    type HoldOrder (
      id: string,
      store: string,
      device: int,
      inode: int,
      createdNanoseconds: int,
      by: string,
      since: float,
      why: string,
      run: ?string
    )

    # One plan's way through the stores that are behind, wave after wave. 'wave' is 0 while stores are counted. The
    # numbers from 'waiting' to 'failed' add up to 'stores'; 'unapproved' are some of the waiting ones. 'halt' says why
    # no run of the plan is started. 'isFinished' says whether it has ended, in whichever wave, and no store has come since.
    type Rollout (
      plan: string,
      version: string,
      wave: int,
      waves: int,
      stores: int,
      waiting: int,
      admitted: int,
      deferred: int,
      migrated: int,
      failed: int,
      unapproved: int,
      secondsToNextWave: ?float,
      closedWindow: ?string,
      halt: ?PauseOrder,
      failures: []string,
      isFinished: ?bool
    )

    # One store: what instard does with it (waiting, probing, pending, queued, running, recovering, retrying,
    # quarantined, held or idle), what the last probe found, and the last failure. 'turn' is its turn in the rollout of its
    # plan (waiting, admitted or deferred), or its result there (migrated or failed). 'notRetried' is in replies of Retry only.
    type Store (
      store: string,
      activity: string,
      state: ?string,
      version: ?string,
      plan: ?string,
      planVersion: ?string,
      reason: ?string,
      error: ?Error,
      secondsToRetry: ?float,
      wave: ?int,
      turn: ?string,
      notRetried: ?string
    )

    # A plugin that cannot be used, and why.
    type RefusedPlugin (
      plugin: string,
      error: Error
    )

    # The daemon as a whole. 'phase' is scanning, running or stopping; 'plans' are the names of the plans of all plugins;
    # 'states' and 'activities' count stores; 'failures' has the first twenty stores whose last attempt failed, then those
    # that are damaged, encrypted, unreadable or not a store: their cause is in 'state' and 'reason'; with these also those
    # for which no plan can be chosen. 'secondsLeft' says how
    # long it takes to migrate all stores that are behind, those of all users, at the rate of the last runs; it is left out
    # where that is not known. 'stateFolder' has the ledger and the holds. instard looks for plugins in 'pluginFolders'.
    type Status (
      version: string,
      pid: int,
      startedAt: float,
      phase: string,
      pause: ?PauseOrder,
      folders: []Folder,
      plugins: []string,
      plans: ?[]string,
      refusedPlugins: []RefusedPlugin,
      stores: int,
      states: [string]int,
      activities: [string]int,
      rollouts: []Rollout,
      runs: []Run,
      failures: []Store,
      secondsLeft: ?float,
      stateFolder: ?string,
      pluginFolders: ?[]string
    )

    # Something that happened, as the journal has it. 'at' is in seconds since 1970, 'priority' as in syslog(3), and
    # 'fields' has the other fields of the entry, such as INSTAR_STORE.
    type Event (
      event: string,
      at: float,
      priority: int,
      message: string,
      fields: [string]string
    )

    # The right to start runs of a plan to this last version, while no more than so many stores have failed. It ends at
    # the time 'until', in seconds of the host's CLOCK_BOOTTIME; without one it lasts until it is revoked.
    type Permission (
      plan: string,
      version: string,
      until: ?float,
      failures: ?int
    )

    # Returns the status. With 'more', also each time when it changes, at most once a second.
    method GetStatus() -> (status: Status)

    # Returns the stores that match, by path; 'prefix' is how the path begins. Needs 'more': a long list comes in
    # several replies.
    method ListStores(state: ?string, activity: ?string, plan: ?string, wave: ?int, turn: ?string, prefix: ?string)
      -> (stores: []Store)

    # Retries stores at once: those that failed or wait for another attempt, and those that were found damaged, encrypted,
    # unreadable or not a store. Without names, all of these. 'others' has the stores that get no attempt now, each with the
    # reason and the next step in 'notRetried'. One that waits for an order has its attempt after that order, unless it is
    # damaged. One whose run has just failed has it after the delay of 'retry', unless an administrator calls.
    method Retry(stores: []string) -> (stores: []Store, others: ?[]Store)

    # Reads all watched folders again.
    method Rescan() -> ()

    # Starts no run until Resume; with 'plan', no run of that plan. Runs in progress finish. A pause survives restarts of
    # the daemon.
    method Pause(why: ?string, plan: ?string) -> ()

    # Ends a pause; with 'plan', lets the plan's rollout go on after its failures.
    method Resume(plan: ?string) -> ()

    # Approves stores whose watch has the policy 'ask': the named stores, or all stores of a plan. Owners may approve
    # their own stores by name.
    method Approve(plan: ?string, stores: []string) -> ()

    # Orders the daemon to leave a store alone until Release. A run in progress stops before its cutover.
    method Hold(store: string, why: string) -> (hold: HoldOrder)

    # Ends the hold on a store, and returns it. With 'hold', only the hold with this 'id'. Without a hold, nothing is done.
    method Release(store: string, hold: ?string) -> (hold: ?HoldOrder)

    # Returns the holds on all stores; to ordinary users, on those that they own.
    method ListHolds() -> (holds: []HoldOrder, unreadable: []Error)

    # Returns runs of the ledger, oldest first: with 'limit' the newest ones, and never more than 10000. With 'results'
    # those that ended in one of these ways. Ordinary users get those of the stores that they own. The keys of a run are
    # those of 'instarctl history --json', see instarctl(1). Needs 'more': many runs come in several replies.
    # 'unreadableLines' counts the lines that cannot be read.
    method History(store: ?string, results: ?[]string, plan: ?string, limit: ?int)
      -> (runs: []object, unreadableLines: int)

    # Sends each event from now on; ordinary users get those about the stores that they own. Needs 'more'. 'missed' says
    # how many events the client has missed before this one, because it read too slowly.
    method Monitor() -> (event: Event, missed: ?int)

    # Replaces all permissions to start runs, where 'coordinator' is configured. 'until' and 'decidedAt' are seconds of
    # CLOCK_BOOTTIME; permissions that were decided before the last ones are ignored. Only root and the user
    # instar-coordinator may call it. Returns how far this host is: 'isCounted' says whether all stores were probed, and
    # 'running' how many stores run or recover, by plan, under "" those whose plan is not known yet.
    method Permit(permissions: []Permission, decidedAt: float)
      -> (isCounted: bool, running: [string]int, pause: ?PauseOrder, rollouts: []Rollout, failures: []Store)

    # The call failed, and nothing was done.
    error Failed (error: Error)

    """
}
