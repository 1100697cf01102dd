import InstarSchema
import InstarSupervisor
import InstarWire

/// A backup, as `instarctl backups` lists, verifies or removes it.
struct BackupReport: Answer {
  enum State: String, Encodable {
    case present, missing, sound, damaged, removed
  }

  var run: String
  var store: String
  var backup: String
  /// When it was made, in seconds since 1970.
  var madeAt: Double?
  var bytes: Int64?
  var state: State
  var manifest: BackupManifest?
  /// Why it was removed.
  var reason: String?
  var error: InstarError?

  init(_ listed: ListedBackup) {
    self.init(listed.reference, state: listed.bytes == nil ? .missing : .present)
    madeAt = listed.madeAt
    bytes = listed.bytes
  }

  init(_ result: BackupResult) {
    switch result.outcome {
    case .sound: self.init(result.backup, state: .sound)
    case .removed(let reason):
      self.init(result.backup, state: .removed)
      self.reason = reason
    case .failed(let error):
      self.init(
        result.backup,
        state: error.code == .missingBackup
          ? .missing : error.code == .damagedBackup ? .damaged : .present)
      self.error = error
    }
  }

  private init(_ backup: BackupReference, state: State) {
    run = backup.run
    store = backup.store
    self.backup = backup.path
    manifest = backup.manifest
    self.state = state
  }

  var lines: [ConsoleLine] {
    guard error == nil else { return [] }
    let reason = reason.map { " (\($0))" } ?? ""
    return ["\(backup): \(state.rawValue)\(reason)"]
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
        backup.bytes.map { bytes -> ConsoleLine in "\(Quantity.bytes(bytes))" }
          ?? Style.bad("missing"),
        "\(backup.reference.store)")
    }
    return table.lines()
  }
}
