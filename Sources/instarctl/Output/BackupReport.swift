import InstarSchema
import InstarSupervisor
import InstarWire

/// A backup, as `instarctl backups` lists, verifies or removes it.
struct BackupReport: CommandOutput {
  enum State: String, Encodable {
    case present, missing, unreadable, sound, damaged, surplus, removed, copied
    /// The file beside the store is gone, its copy in another folder is left.
    case copyOnly

    /// The state, in a sentence about the backup.
    var phrase: String {
      switch self {
      case .surplus: "would be removed"
      case .copyOnly: "only its copy is left"
      default: rawValue
      }
    }

    init(of listed: ListedBackup) {
      self =
        listed.isMissing
        ? .missing
        : listed.isCopyOnly
          ? .copyOnly
          : listed.error != nil
            ? .unreadable : listed.reference.manifest?.isSound == false ? .damaged : .present
    }

    init(of error: InstarError) {
      self =
        switch error.code {
        case .missingBackup: .missing
        case .damagedBackup: .damaged
        case .unreadableStore: .unreadable
        default: .present
        }
    }
  }

  var run: String
  var store: String
  var backup: String
  /// Its copy in another folder.
  var copy: String?
  /// The size of that copy.
  var copyBytes: Int64?
  /// When it was made, in seconds since 1970.
  var madeAt: Double?
  var bytes: Int64?
  var state: State
  var manifest: BackupManifest?
  /// Why it was removed, or would be.
  var reason: String?
  var error: InstarError?

  init(_ listed: ListedBackup) {
    self.init(listed.reference, state: State(of: listed))
    madeAt = listed.madeAt
    error = listed.error
    bytes = listed.bytes
    copyBytes = listed.copyBytes
  }

  init(_ result: BackupResult) {
    switch result.outcome {
    case .sound: self.init(result.backup, state: .sound)
    case .removed(let reason):
      self.init(result.backup, state: .removed)
      self.reason = reason
    case .surplus(let reason):
      self.init(result.backup, state: .surplus)
      self.reason = reason
    case .kept(let error):
      self.init(result.backup, state: .present)
      self.error = error
    case .failed(let error):
      self.init(result.backup, state: State(of: error))
      self.error = error
    case .copied(let copy):
      self.init(result.backup, state: .copied)
      self.copy = copy.path
      copyBytes = copy.bytes
    case .notCopied(let error):
      self.init(result.backup, state: .present)
      self.error = error
    }
  }

  private init(_ backup: BackupReference, state: State) {
    run = backup.run
    store = backup.store
    self.backup = backup.path
    copy = backup.copy
    manifest = backup.manifest
    self.state = state
  }

  var lines: [ConsoleLine] {
    guard error == nil else { return [] }
    if state == .copied, let copy, let copyBytes {
      return ["\(backup): copied to \(copy), \(Quantity.bytes(copyBytes)), and read back"]
    }
    let reason = reason.map { " (\($0))" } ?? ""
    return ["\(backup): \(state.phrase)\(reason)"]
  }

  /// Backups, one a line.
  static func table(of backups: [ListedBackup]) -> [ConsoleLine] {
    var table = Table(
      .left, .left, .left, .right, .left,
      header: ["RUN", "MADE", "VERSION", "SIZE", "STORE"])
    for backup in backups {
      table.add(
        "\(backup.reference.run)", "\(Quantity.time(secondsSince1970: backup.madeAt))",
        "\(backup.reference.manifest?.version?.description ?? "")",
        size(of: backup),
        "\(backup.reference.store)")
    }
    return table.lines()
  }

  /// The size of a backup with its files of large values; where it cannot be restored, its state.
  private static func size(of backup: ListedBackup) -> ConsoleLine {
    let state = State(of: backup)
    if state == .copyOnly { return Style.warning("\(state.rawValue)") }
    guard state == .present, let bytes = backup.bytes else { return Style.bad("\(state.rawValue)") }
    return "\(Quantity.bytes(bytes.saturatingAdd(backup.externalBytes)))"
  }
}
