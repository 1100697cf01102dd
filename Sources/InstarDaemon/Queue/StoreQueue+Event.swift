import InstarConfiguration
import InstarSchema
import InstarSupervisor
import InstarWire

/// What goes into the queue (`Event`), and what comes out (`Action`).
extension StoreQueue {
  /// What happened.
  enum Event: Sendable {
    /// The file or one of its side files was written, created, renamed or deleted.
    case touched(String)
    /// The store exists, in the version that a scan or `readVersion` found.
    case versionRead(String, WatchedVersion)
    /// A scan found these stores.
    case found([Scanner.Store])
    /// There is no regular file at that path.
    case missing(String)
    /// The file system of the store does not answer, so that its probe or run does not begin. A scan finds the store as
    /// soon as there is an answer.
    case unanswered(String)
    /// A folder has another path now, and the stores in it too.
    case folderMoved(from: String, to: String)
    /// The versions are those of the file just before and just after the probe.
    case probed(ProbeReport, before: WatchedVersion?, after: WatchedVersion?)
    /// The batch ended. Without an error, stores without an answer are queued again.
    case probesEnded(InstarError?)
    case runEnded(RunReport, before: WatchedVersion?, after: WatchedVersion?)
    /// A run of the store was cut off. The owner is that of the file, where it is known.
    case interrupted(String, owner: UInt32?)
    /// The recovery ended.
    case recovered(String, InstarError?)
    /// Probing may start: the plugins found at the start are described.
    case released
    /// Holds of these stores were placed or released, or of any if it is `nil`; and the stores that have one now.
    case holdsChanged(of: Set<String>?, held: Set<String>)
    /// Somebody wants these stores retried: for an operator at once, for their owner after the first delay of the
    /// back-off at the earliest.
    case retryWanted([String], byOperator: Bool)
    /// An operator stopped or resumed the start of runs.
    case pauseChanged(isPaused: Bool)
    /// The only plans of which this host may start runs now, because a fleet coordinates them.
    case permitted(Manager.PermitParameters)
    /// The windows of the watches that have one, as they are now, by path.
    case windowsKnown([String: TimeWindow.State])
    /// The set of plugins changed, or an operator asks for a reload: every verdict is in doubt.
    case verdictsInDoubt
    /// The files of the plugins that are used, as they are now.
    case pluginsKnown([RolloutRecord.PluginFile])
    /// All folders were read.
    case scanned
    /// An operator halts or resumes a plan's rollout, or approves the migration of stores.
    case rolloutOrder(plan: String, RolloutOrder)
    case settingsChanged(Settings)
    /// The store is no longer watched.
    case forgotten(String)
    /// A deadline passed.
    case tick
    /// Start nothing new from now on.
    case stopping
  }

  /// What an operator orders for a rollout.
  enum RolloutOrder: Sendable, Hashable {
    case halt(Manager.Pause)
    case resume
    /// These stores, or all if none is named.
    case approve([String])
  }

  /// What to do.
  enum Action: Sendable, Hashable {
    /// Read the version of the file; answer with `versionRead` or `missing`. A scan may answer later.
    case readVersion(String)
    /// Answer with `probed`, `missing` or `unanswered` for each, then `probesEnded`.
    case probe([String])
    /// Answer with `runEnded` or `unanswered`. The plugin is the one the probe named.
    case run(String, plugin: String?, rehearses: Bool = false)
    /// Answer with `recovered` or `unanswered`.
    case recover(String)
    case reportProbe(ProbeReport)
    case reportProbeFailure(String, InstarError, FollowUp)
    /// The batch failed for a reason that is not in any store.
    case reportProbesFailure(InstarError, FollowUp)
    case reportRun(RunReport, FollowUp)
    case reportRecoveryFailure(InstarError, FollowUp)
    /// Record a quarantined store, or that these are no longer quarantined.
    case keepQuarantine(QuarantineRecord)
    case endQuarantine([String])
    /// Record the rollouts, and report the change of this one.
    case rolloutChanged(Manager.Rollout, Rollout.Change)
  }

  /// What follows a failed or busy run.
  enum FollowUp: Sendable, Hashable {
    case none
    case retry(after: Duration)
    /// After so many equal failures, the next attempt follows a change of the store or the plugins.
    case waitsForChange(failures: Int)
    /// The store or the plugins changed during the run: retry now.
    case atOnce
    /// The daemon stops.
    case afterRestart
  }
}
