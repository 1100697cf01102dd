public import InstarLinux
public import InstarWire

/// The checked values of `instard.yml`: what the daemon does.
public struct Configuration: Sendable, Hashable {
  /// One folder that holds stores, or several that match a pattern.
  public struct Watch: Sendable, Hashable {
    /// An absolute path without a slash at its end: the folder, or the one above all that match.
    public var folder: String
    /// A pattern for each level below `folder`, as fnmatch(3) understands it; empty where `folder` itself holds the
    /// stores.
    public var subfolders: [String] = []
    /// File names as fnmatch(3) understands them; a file that matches one of them is a store.
    public var patterns: [String]
    public var isRecursive: Bool
    /// 0 to 4, as `-com.apple.CoreData.SQLDebug`: from 3 on, values of the rows are shown too.
    public var sqlDebugLevel: Int
    /// Which backups of its stores are kept; `nil` for those of all watches.
    public var backups: BackupRetention?
    /// What to do with a store that other processes use.
    public var whenBusy: BusyPolicy
    /// Which way of the cutover its stores take.
    public var cutover: CutoverPolicy
    /// How much of its stores a run reads before the cutover.
    public var verification: VerificationPolicy
    /// How long a run of its stores waits for their locks; `nil` for the time of all watches.
    public var busyTimeout: Duration?
    /// The folder for copies of their backups; `nil` for that of all watches.
    public var backupFolder: String?
    /// How these copies are compressed; `nil` for that of all watches.
    public var backupCompression: BackupCompression?
    /// What to do with its stores that are behind.
    public var policy: MigrationPolicy
    /// The first wave in which its stores are migrated.
    public var wave: Int
    /// The time limit of a stage on its stores; `nil` for that of all watches.
    public var stageTimeLimit: Duration?
    /// The most memory that a worker may use for them; `nil` for that of all watches.
    public var workerMemoryBytes: Int64?
    /// How many of its stores may fail in a rollout; one more halts it. `nil` for no limit of its own.
    public var budget: RolloutSettings.Share?
    /// When their runs may start; `nil` for always.
    public var window: TimeWindow?
    /// The priority of their runs beside other programs.
    public var priority = ProcessPriority()
    /// The names of the plans that its stores are compared with; empty for those of all plugins.
    public var plans: [String] = []
    /// How many of its stores may run at the same time; `nil` for no limit of its own.
    public var parallelRuns: Int?

    public init(
      folder: String, patterns: [String] = ["*.store"], isRecursive: Bool = false,
      sqlDebugLevel: Int = 0, backups: BackupRetention? = nil, whenBusy: BusyPolicy = .wait,
      cutover: CutoverPolicy = .automatic, verification: VerificationPolicy = .standard,
      busyTimeout: Duration? = nil, backupFolder: String? = nil,
      backupCompression: BackupCompression? = nil, policy: MigrationPolicy = .automatic,
      wave: Int = 1
    ) {
      self.folder = folder
      self.patterns = patterns
      self.isRecursive = isRecursive
      self.sqlDebugLevel = sqlDebugLevel
      self.backups = backups
      self.whenBusy = whenBusy
      self.cutover = cutover
      self.verification = verification
      self.busyTimeout = busyTimeout
      self.backupFolder = backupFolder
      self.backupCompression = backupCompression
      self.policy = policy
      self.wave = wave
    }

    /// The folders as the configuration has them, such as "/srv/*/stores". No two watches have the same.
    public var path: String {
      subfolders.isEmpty
        ? folder : ([folder == "/" ? "" : folder] + subfolders).joined(separator: "/")
    }
  }

  /// How long to wait before a failed or busy run is retried: `first`, then twice as long each time, up to `most`.
  public struct Retry: Sendable, Hashable {
    public var first: Duration
    public var most: Duration
    /// After so many attempts a store is quarantined, also where waiting could help; `nil` for no limit.
    public var attempts: Int?

    public init(
      first: Duration = .seconds(10), most: Duration = .seconds(600), attempts: Int? = nil
    ) {
      self.first = first
      self.most = most
      self.attempts = attempts
    }
  }

  /// Where ledger and phase journal are kept.
  public var stateFolder: String
  /// Where `instarctl` reaches the daemon; `nil` for the default of the state folder.
  public var socketPath: String?
  /// Folders whose `.so` files are plugins.
  public var pluginFolders = ["/usr/lib/instar/plugins", "/usr/local/lib/instar/plugins"]
  /// How often every folder is read again, whatever events the kernel reported; `nil`: see `rescanDelay`.
  public var rescanInterval: Duration?
  /// How long a file must be unchanged before it is probed.
  public var debounce = Duration.milliseconds(500)
  public var retry = Retry()
  /// How many runs may go on at the same time.
  public var parallelRuns = 2
  /// A stage that takes longer is ended.
  public var stageTimeLimit = Duration.seconds(3600)
  /// The most memory that a worker may use.
  public var workerMemoryBytes = MigrationRequest.defaultWorkerMemoryBytes
  /// How long a run waits for others to release their locks on a store, where its watch does not say otherwise.
  public var busyTimeout = Duration.seconds(5)
  /// Which backups are kept, where a watch does not say otherwise.
  public var backups = BackupRetention()
  /// The folder for copies of backups, where a watch does not say otherwise; `nil` for none.
  public var backupFolder: String?
  /// How copies of backups are compressed, where a watch does not say otherwise.
  public var backupCompression = BackupCompression.none
  /// How often old backups are removed and a sample of the others is verified.
  public var backupCheckInterval = Duration.seconds(86_400)
  /// Which files of the ledger are kept.
  public var ledger = LedgerRetention()
  /// In which order and how far the stores of a plan are migrated; `nil` for all at once.
  public var rollout: RolloutSettings?
  /// How the hosts of a fleet take turns; `nil` for a host that needs no permission.
  public var coordinator: CoordinatorSettings?
  /// Where the metrics can be read.
  public var metrics = MetricsSettings()
  /// Whether only plugins are loaded that a trusted key signed.
  public var requiresSignature = false
  /// The folder of the trusted keys.
  public var trustedKeysFolder = TrustedKeys.defaultFolder
  /// The programs that run on events.
  public var hooks = HookSettings()
  public var watches: [Watch] = []

  /// How stores have their turn, with the budgets of the watches.
  public var rolloutSettings: RolloutSettings {
    var settings = rollout ?? RolloutSettings()
    for watch in watches { settings.watchBudgets[watch.path] = watch.budget }
    return settings
  }

  /// The plugin folders that somebody named. The others may be missing: the first package that brings a plugin makes
  /// them.
  public var namedPluginFolders: [String] {
    pluginFolders.filter { !Configuration().pluginFolders.contains($0) }
  }

  /// Where `instarctl` reaches the daemon.
  public var socket: String { socketPath ?? Installation.socket(ofStateFolder: stateFolder) }

  /// The values of an empty file.
  public init(stateFolder: String = Installation.defaultStateFolder) {
    self.stateFolder = stateFolder
  }
}

extension Configuration {
  private static let defaultRescanDelay = Duration.seconds(300)
  private static let longestRescanDelay = Duration.seconds(3600)
  /// Rescans take at most so small a part of a processor, with what the daemon then does about each store.
  private static let rescanShare = 4000

  /// Returns how long after a scan the next one follows.
  ///
  /// By default five minutes, and up to an hour where there is much to read: the kernel reports changes as they happen,
  /// so a quiet daemon should not read 100,000 stores all the time.
  ///
  /// - Parameter processorTime: What the scan of all folders took.
  public func rescanDelay(after processorTime: Duration) -> Duration {
    rescanInterval
      ?? min(
        max(Self.defaultRescanDelay, processorTime * Self.rescanShare), Self.longestRescanDelay)
  }
}
