extension InstarError {
  /// A stable number for one kind of error. Documented in instard(8) and the journal's catalog; never reused.
  public struct Code: RawRepresentable, Sendable, Hashable, Codable {
    /// "I" and three digits; the first is the group below.
    public let rawValue: String
    /// A code that another process, perhaps a newer one, sent.
    public init(rawValue: String) { self.rawValue = rawValue }
    private init(_ rawValue: String) { self.rawValue = rawValue }

    // 1: the store
    /// The file is not a SQLite database, or not one with a store.
    public static let notAStore = Code("I101")
    /// The store is damaged: cut short, or refused by SQLite's own check.
    public static let corruptStore = Code("I102")
    /// The file looks like an encrypted database.
    public static let encryptedStore = Code("I103")
    /// Another process holds the store.
    public static let busyStore = Code("I104")
    /// Reading the store is not permitted, or failed.
    public static let unreadableStore = Code("I105")
    /// No such file.
    public static let missingStore = Code("I106")
    /// The store's path contains a symbolic link, or another user could have placed the store.
    public static let unsafePath = Code("I107")
    /// The file system has no room for backup and clone.
    public static let noSpace = Code("I108")
    /// An operator ordered to leave the store alone.
    public static let heldStore = Code("I109")

    // 2: match, plan, check
    /// The store is at no version of the plan.
    public static let unknownVersion = Code("I201")
    /// The store is newer than the plan.
    public static let storeAhead = Code("I202")
    /// The store declares no version; it has to be adopted.
    public static let unversionedStore = Code("I203")
    /// Rows have no value for a required attribute.
    public static let missingRequiredValues = Code("I204")
    /// Rows have the same value where the new version allows it once, or a save would give it to a second row.
    public static let duplicateUniqueValues = Code("I205")
    /// The plan has no stages from the store's version to its last version.
    public static let noMigrationPath = Code("I206")
    /// The plan contradicts itself.
    public static let invalidPlan = Code("I207")
    /// The change needs code: a custom stage.
    public static let needsCustomStage = Code("I208")
    /// A schema names a model that it does not list.
    public static let incompleteSchema = Code("I209")
    /// Several plans know the store and end at the same version.
    public static let ambiguousPlan = Code("I210")
    /// No plan knows the store.
    public static let noPlan = Code("I211")
    /// The store differs from the version to adopt it as; the adoption must be confirmed.
    public static let unconfirmedAdoption = Code("I212")
    /// The file is not a schema that `instarctl schema export` wrote.
    public static let notASchema = Code("I213")
    /// A change of type loses values, and neither the plan nor the operator accepts that.
    public static let unacceptedLoss = Code("I214")
    /// Rows have fewer or more models in a relationship than the new version allows.
    public static let modelCount = Code("I215")

    // 3: a run
    /// A stage of the plan threw an error.
    public static let stageFailed = Code("I301")
    /// A signal ended the worker: the plugin crashed.
    public static let workerDied = Code("I302")
    /// The worker exited before its work was done.
    public static let workerExited = Code("I303")
    /// A stage exceeded its time limit.
    public static let timeLimit = Code("I304")
    /// The plugin printed more than the limit.
    public static let outputLimit = Code("I305")
    /// Another process sent a malformed or unexpected message.
    public static let protocolViolation = Code("I306")
    /// The migrated clone did not pass a check.
    public static let verificationFailed = Code("I307")
    /// The migrated clone has fewer rows than it must have.
    public static let rowsLost = Code("I308")
    /// The migrated clone has references to missing rows.
    public static let brokenReferences = Code("I309")
    /// The structure of the migrated clone does not match its version.
    public static let unexpectedStructure = Code("I310")
    /// The cutover failed; SQLite rolled it back.
    public static let writeBackFailed = Code("I311")
    /// The store was replaced or written since the run started.
    public static let storeChanged = Code("I312")
    /// The backup could not be created or verified.
    public static let backupFailed = Code("I313")
    /// The run was interrupted before its cutover.
    public static let interrupted = Code("I314")
    /// The keeper ended before it replied.
    public static let keeperDied = Code("I315")
    /// SQLite refused a statement.
    public static let sqlFailed = Code("I316")
    /// The plugin exceeded its limit of memory, threads or file size.
    public static let workerLimit = Code("I317")
    /// No such backup.
    public static let missingBackup = Code("I318")
    /// The backup is not what its manifest records, or is damaged.
    public static let damagedBackup = Code("I319")
    /// The migrated clone violates an invariant of the plan.
    public static let invariantViolated = Code("I320")

    // 4: a plugin
    /// The file is not a plugin.
    public static let notAPlugin = Code("I401")
    /// The plugin was built for another version of the SDK.
    public static let wrongABI = Code("I402")
    /// The plugin could not be loaded.
    public static let pluginLoadFailed = Code("I403")
    /// Another user than root could have placed or changed the plugin.
    public static let untrustedPlugin = Code("I404")
    /// The plugin's source did not compile.
    public static let buildFailed = Code("I405")
    /// No such plugin.
    public static let missingPlugin = Code("I406")
    /// No trusted key signed the plugin as it is.
    public static let unsignedPlugin = Code("I407")
    /// The file is not a key for signatures, or another user than root could have placed it.
    public static let invalidKey = Code("I408")
    /// A test of the plugin failed, or none was run.
    public static let testsFailed = Code("I409")

    // 5: the use of models
    /// A model was used with a store whose schema does not contain it.
    public static let modelNotInSchema = Code("I501")
    /// A model cannot be stored as it is declared, or was used with a context that it does not belong to.
    public static let invalidModel = Code("I502")
    /// Instar does not support this.
    public static let unsupported = Code("I503")
    /// Transactions after a token of the history were deleted.
    public static let historyTokenExpired = Code("I504")

    // 6: the daemon and the installation
    /// The configuration cannot be used.
    public static let invalidConfiguration = Code("I601")
    /// A folder cannot be watched.
    public static let watchFailed = Code("I602")
    /// The state folder cannot be read or written.
    public static let stateFolderFailed = Code("I603")
    /// A program or library of Instar is missing.
    public static let incompleteInstallation = Code("I604")
    /// An output file could not be written.
    public static let outputFailed = Code("I605")
    /// The command line is wrong.
    public static let wrongUsage = Code("I606")
    /// instard does not run, or does not answer.
    public static let daemonNotReachable = Code("I607")
    /// Only root, members of the group `instar-admin` and, for one store, its owner may do this.
    public static let notPermitted = Code("I608")
    /// The metrics cannot be served or written.
    public static let metricsFailed = Code("I609")
    /// A hook failed, took too long, or could not be started.
    public static let hookFailed = Code("I610")
    /// Another user than root could have placed or changed the hook.
    public static let untrustedHook = Code("I611")
    /// etcd cannot be reached, or refused a request.
    public static let coordinationFailed = Code("I612")
    /// A rollout over hosts cannot be read, begun or changed.
    public static let rolloutRefused = Code("I613")
    /// No such configuration, schema, key, source or folder. A store, a backup and a plugin have codes of their own.
    public static let missingFile = Code("I614")
    /// The process, its user or the machine may have no more open files, processes, threads or memory.
    public static let limitReached = Code("I615")
    /// A defect of Instar.
    public static let internalError = Code("I699")
  }
}
