/// The one error value: what went wrong, where, what state the store is in now, and what to do next.
///
/// Made where the cause is known, and carried unchanged to the terminal, to `--json` and to the journal.
public struct InstarError: Error, Sendable, Codable, Hashable {
  public var code: Code
  /// What could not be done, with its subject: "cannot migrate '/srv/a.store' from 1.0.0 to 2.0.0".
  public var what: String
  /// The path of the store it is about, where it is about one.
  public var store: String?
  /// The stage, with its place and plugin, where one was running.
  public var stage: String?
  public var cause: String
  /// What state the store is in now: "unchanged".
  public var state: String?
  /// What to do next.
  public var next: String?

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
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    private init(_ rawValue: String) { self.rawValue = rawValue }

    // 1: the store
    public static let notAStore = Code("I101")
    public static let corruptStore = Code("I102")
    public static let encryptedStore = Code("I103")
    public static let busyStore = Code("I104")
    public static let unreadableStore = Code("I105")
    public static let missingStore = Code("I106")
    public static let unsafePath = Code("I107")
    public static let noSpace = Code("I108")

    // 2: match, plan, check
    public static let unknownVersion = Code("I201")
    public static let storeAhead = Code("I202")
    public static let unversionedStore = Code("I203")
    public static let missingRequiredValues = Code("I204")
    public static let duplicateUniqueValues = Code("I205")
    public static let noMigrationPath = Code("I206")
    public static let invalidPlan = Code("I207")
    public static let needsCustomStage = Code("I208")
    public static let incompleteSchema = Code("I209")
    public static let ambiguousPlan = Code("I210")
    public static let noPlan = Code("I211")

    // 3: a run
    public static let stageFailed = Code("I301")
    public static let workerDied = Code("I302")
    public static let workerExited = Code("I303")
    public static let timeLimit = Code("I304")
    public static let outputLimit = Code("I305")
    public static let protocolViolation = Code("I306")
    public static let verificationFailed = Code("I307")
    public static let rowsLost = Code("I308")
    public static let brokenReferences = Code("I309")
    public static let unexpectedStructure = Code("I310")
    public static let writeBackFailed = Code("I311")
    public static let storeChanged = Code("I312")
    public static let backupFailed = Code("I313")
    public static let interrupted = Code("I314")
    public static let keeperDied = Code("I315")
    public static let sqlFailed = Code("I316")

    // 4: a plugin
    public static let notAPlugin = Code("I401")
    public static let wrongABI = Code("I402")
    public static let pluginLoadFailed = Code("I403")
    public static let untrustedPlugin = Code("I404")
    public static let buildFailed = Code("I405")
    public static let missingPlugin = Code("I406")

    // 5: the use of models
    public static let modelNotInSchema = Code("I501")
    public static let invalidModel = Code("I502")
    public static let unsupported = Code("I503")

    // 6: the daemon and the installation
    public static let invalidConfiguration = Code("I601")
    public static let watchFailed = Code("I602")
    public static let stateFolderFailed = Code("I603")
    public static let incompleteInstallation = Code("I604")
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
