/// The one error value: what went wrong, where, what state the store is in now, and what to do next.
///
/// Made where the cause is known, and carried unchanged to the terminal, to `--json` and to the journal.
public struct InstarError: Error, Sendable, Codable, Hashable {
  /// What kind of error it is, for programs.
  public var code: Code
  /// What could not be done, with its subject: "cannot migrate '/srv/a.store' from 1.0.0 to 2.0.0".
  public var what: String
  /// The path of the store it is about, where it is about one.
  public var store: String?
  /// The stage, with its place and plugin, where one was running.
  public var stage: String?
  /// Why.
  public var cause: String
  /// What state the store is in now: "unchanged".
  public var state: String?
  /// What to do next.
  public var next: String?

  /// An error; what is not known here is filled in by `about(_:store:stage:state:next:)` further out.
  public init(
    _ code: Code, _ what: String, store: String? = nil, stage: String? = nil, cause: String,
    state: String? = nil, next: String? = nil
  ) {
    self.code = code
    self.what = what
    self.store = store
    self.stage = stage
    self.cause = cause
    self.state = state
    self.next = next
  }

  /// A stable number for one kind of error. Documented in instard(8) and the journal's catalog; never reused.
  public struct Code: RawRepresentable, Sendable, Hashable, Codable {
    /// "I" and three digits; the first is the group below.
    public let rawValue: String
    /// A code that another process, perhaps a newer one, sent.
    public init(rawValue: String) { self.rawValue = rawValue }
    private init(_ rawValue: String) { self.rawValue = rawValue }

    // 1: the store
    /// The file is no SQLite database, or none that holds a store.
    public static let notAStore = Code("I101")
    /// The store is damaged: cut short, or refused by SQLite's own check.
    public static let corruptStore = Code("I102")
    /// The file looks like an encrypted database.
    public static let encryptedStore = Code("I103")
    /// Another process holds the store.
    public static let busyStore = Code("I104")
    /// The store may not be read, or reading it failed.
    public static let unreadableStore = Code("I105")
    /// There is no such file.
    public static let missingStore = Code("I106")
    /// The way to the store leads over a symbolic link, or others could have put something there.
    public static let unsafePath = Code("I107")
    /// The file system has no room for backup and clone.
    public static let noSpace = Code("I108")

    // 2: match, plan, check
    /// The store is at no version of the plan.
    public static let unknownVersion = Code("I201")
    /// The store is newer than the plan.
    public static let storeAhead = Code("I202")
    /// The store declares no version; it has to be adopted.
    public static let unversionedStore = Code("I203")
    /// Rows have no value for a required attribute.
    public static let missingRequiredValues = Code("I204")
    /// Rows have the same value where the new version allows it once.
    public static let duplicateUniqueValues = Code("I205")
    /// No stages of the plan lead from the store's version to the last one.
    public static let noMigrationPath = Code("I206")
    /// The plan contradicts itself.
    public static let invalidPlan = Code("I207")
    /// The change cannot be made without code.
    public static let needsCustomStage = Code("I208")
    /// A schema names a model that it does not list.
    public static let incompleteSchema = Code("I209")
    /// Several plans know the store and end at the same version.
    public static let ambiguousPlan = Code("I210")
    /// No plan knows the store.
    public static let noPlan = Code("I211")
    /// The store is built nearly like the version it shall be adopted as; that has to be confirmed.
    public static let unconfirmedAdoption = Code("I212")
    /// The file holds no schema that `instarctl schema export` wrote.
    public static let notASchema = Code("I213")

    // 3: a run
    /// A stage of the plan threw an error.
    public static let stageFailed = Code("I301")
    /// The worker was ended by a signal: the plugin crashed.
    public static let workerDied = Code("I302")
    /// The worker ended by itself before its work was done.
    public static let workerExited = Code("I303")
    /// A stage took longer than it may.
    public static let timeLimit = Code("I304")
    /// The plugin printed more than it may.
    public static let outputLimit = Code("I305")
    /// Another process sent something that is no message.
    public static let protocolViolation = Code("I306")
    /// The migrated clone did not pass a check.
    public static let verificationFailed = Code("I307")
    /// The migrated clone has fewer rows than it must have.
    public static let rowsLost = Code("I308")
    /// The migrated clone has references that lead nowhere.
    public static let brokenReferences = Code("I309")
    /// The migrated clone is built otherwise than its version says.
    public static let unexpectedStructure = Code("I310")
    /// The store could not be written; SQLite undid what was begun.
    public static let writeBackFailed = Code("I311")
    /// The store is another file, or was written, since the run began.
    public static let storeChanged = Code("I312")
    /// The backup could not be made or verified.
    public static let backupFailed = Code("I313")
    /// The run was ended before it wrote the store.
    public static let interrupted = Code("I314")
    /// The keeper ended before it answered.
    public static let keeperDied = Code("I315")
    /// SQLite refused a statement.
    public static let sqlFailed = Code("I316")

    // 4: a plugin
    /// The file is no plugin.
    public static let notAPlugin = Code("I401")
    /// The plugin was built for another version of the SDK.
    public static let wrongABI = Code("I402")
    /// The plugin could not be loaded.
    public static let pluginLoadFailed = Code("I403")
    /// Others than its owner could have written the plugin.
    public static let untrustedPlugin = Code("I404")
    /// The plugin's source did not compile.
    public static let buildFailed = Code("I405")
    /// There is no such plugin.
    public static let missingPlugin = Code("I406")

    // 5: the use of models
    /// A model was used with a store whose schema does not hold it.
    public static let modelNotInSchema = Code("I501")
    /// A model cannot be stored as it is declared.
    public static let invalidModel = Code("I502")
    /// Something that Instar cannot do.
    public static let unsupported = Code("I503")

    // 6: the daemon and the installation
    /// The configuration cannot be used.
    public static let invalidConfiguration = Code("I601")
    /// A folder cannot be watched.
    public static let watchFailed = Code("I602")
    /// The state folder cannot be read or written.
    public static let stateFolderFailed = Code("I603")
    /// A program or library of Instar is not where it must be.
    public static let incompleteInstallation = Code("I604")
    /// A file that was asked for could not be written.
    public static let outputFailed = Code("I605")
    /// A defect of Instar.
    public static let internalError = Code("I699")
  }
}

extension InstarError: CustomStringConvertible {
  /// The error on several lines, as a person reads it on a terminal and in the journal.
  ///
  /// ```text
  /// error: cannot migrate '/srv/app/a.store' from 1.2.0 to 2.0.0
  ///   stage:  AddTags (2 of 3), plugin 'notes' 0.4.1
  ///   cause:  14 rows of Note have no value for required attribute 'uid'
  ///   store:  unchanged
  ///   next:   give 'uid' a default, or fill it in willMigrate   [I204]
  /// ```
  public var description: String {
    var lines = ["error: \(what)"]
    func add(_ label: String, _ text: String?) {
      guard let text, !text.isEmpty else { return }
      let indented = text.split(separator: "\n", omittingEmptySubsequences: false)
        .joined(separator: "\n          ")
      lines.append(
        "  \(label)\(String(repeating: " ", count: max(1, 8 - label.utf8.count)))\(indented)")
    }
    add("stage:", stage)
    add("cause:", cause)
    add("store:", state)
    add("next:", next)
    lines[lines.count - 1] += "   [\(code.rawValue)]"
    return lines.joined(separator: "\n")
  }
}

extension InstarError {
  /// The same error, with what a caller further out knows filled in where it is still missing.
  public func about(
    _ what: String? = nil, store: String? = nil, stage: String? = nil, state: String? = nil,
    next: String? = nil
  ) -> InstarError {
    var copy = self
    if let what { copy.what = what }
    copy.store = copy.store ?? store
    copy.stage = copy.stage ?? stage
    copy.state = copy.state ?? state
    copy.next = copy.next ?? next
    return copy
  }
}
