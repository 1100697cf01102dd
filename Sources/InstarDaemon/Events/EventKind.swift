import Foundation
public import Logging

/// The closed list of events, each with the `MESSAGE_ID` that the journal's catalog explains.
///
/// The raw value is the field `INSTAR_EVENT`. Scripts rely on names and ids: never change or reuse them. Make new ids
/// with `systemd-id128 new`.
public enum EventKind: String, Sendable, Hashable, CaseIterable {
  case daemonStarted = "daemon-started"
  case daemonStopping = "daemon-stopping"
  case configurationLoaded = "configuration-loaded"
  case configurationRefused = "configuration-refused"
  case watchStarted = "watch-started"
  case watchFailed = "watch-failed"
  case changesLost = "changes-lost"
  case pluginAccepted = "plugin-accepted"
  case pluginRefused = "plugin-refused"
  case pluginRemoved = "plugin-removed"
  case storeCurrent = "store-current"
  case storeBehind = "store-behind"
  case storeHeld = "store-held"
  case storeAhead = "store-ahead"
  case storeUnversioned = "store-unversioned"
  case storeUnknown = "store-unknown"
  case storeNotAStore = "store-not-a-store"
  case storeCorrupt = "store-corrupt"
  case storeEncrypted = "store-encrypted"
  case storesUnusable = "stores-unusable"
  case storeBusy = "store-busy"
  case probeFailed = "probe-failed"
  case runStarted = "run-started"
  case runLocked = "run-locked"
  case runBackedUp = "run-backed-up"
  case runStageStarted = "run-stage-started"
  case runStageFinished = "run-stage-finished"
  case runProgress = "run-progress"
  case runVerified = "run-verified"
  case runWrittenBack = "run-written-back"
  case runOutput = "run-output"
  case runSQL = "run-sql"
  case runMigrated = "run-migrated"
  case runNotNeeded = "run-not-needed"
  case runRefused = "run-refused"
  case runFailed = "run-failed"
  case runsFailed = "runs-failed"
  case runBusy = "run-busy"
  case runRecovered = "run-recovered"
  case recoveryFailed = "recovery-failed"
  case backupCopied = "backup-copied"
  case backupNotCopied = "backup-not-copied"
  case backupRemoved = "backup-removed"
  case backupDamaged = "backup-damaged"
  case backupsVerified = "backups-verified"
  case runRehearsed = "run-rehearsed"
  case waveOpened = "wave-opened"
  case waveDone = "wave-done"
  case rolloutFinished = "rollout-finished"
  case rolloutHalted = "rollout-halted"
  case rolloutResumed = "rollout-resumed"
  case rolloutApproved = "rollout-approved"
  case entriesLeftOut = "entries-left-out"
  case windowOpened = "window-opened"
  case windowClosed = "window-closed"
  case paused = "paused"
  case resumed = "resumed"
  case hookRan = "hook-ran"
  case hookFailed = "hook-failed"
  case hookEventsDropped = "hook-events-dropped"
  case problem = "problem"

  /// 128 bits as 32 hexadecimal digits.
  public var messageID: String {
    switch self {
    case .daemonStarted: "f42ec91530754bb5838ee2e33d11bd0b"
    case .daemonStopping: "7e90629e97c14ee197dac2a7bfddb868"
    case .configurationLoaded: "74ff0f174d844930ab485541f9950ab1"
    case .configurationRefused: "251b8dc06ccf49069225d55eb9658d8a"
    case .windowOpened: "f4d92bb700fe46dbaec4ab881b0c87aa"
    case .windowClosed: "49a8eaa841794ceab0bfc4540bdc1421"
    case .watchStarted: "ee393edd832147ccb2da5e749048e6e2"
    case .watchFailed: "8b23f5dc86424d8492077a80d518c3c2"
    case .changesLost: "9f244277d1044a7a86c7dff70736a830"
    case .pluginAccepted: "878fb3034eab402485a78e89dc6984d3"
    case .pluginRefused: "1f1c4830a8a04f4d8f0ee4d002cdce3b"
    case .pluginRemoved: "4a77f3fd0abb42e7a7ebe9f2bcbc97cd"
    case .storeCurrent: "7a2c3c018aa44af4b485e267728948e7"
    case .storeBehind: "b3709ba94c0d45c887e7a2d2fa2fa70c"
    case .storeHeld: "1c021b06f3974cd4af1f8faacf7bcf61"
    case .storeAhead: "a6cfdf45df6946d6898cfd809aea04be"
    case .storeUnversioned: "c062ba0f6c7a47fb897d35511316b313"
    case .storeUnknown: "d82e225d06934d34a59a98faeee8fcc4"
    case .storeNotAStore: "0bf8eb4b23614426964fd2026614b52d"
    case .storeCorrupt: "ab794f01cd464810a93db30767e70d91"
    case .storeEncrypted: "14055a057d7d4204a5501e3695495462"
    case .storesUnusable: "2ea235ba68af4aa79237e7dab144dc51"
    case .storeBusy: "5eb6ef38a3ab4530b521bdbea94bed5b"
    case .probeFailed: "1230be34f1d24f5f878bf7dffa77e116"
    case .runStarted: "e05a36681e9b494c8b3eaca6224188f8"
    case .runLocked: "aa74567e87b74267bcb6b1e0c97d0b9d"
    case .runBackedUp: "32a89ac5806e4aa181562977f464bf35"
    case .runStageStarted: "aafcb68606f34996884b66927e833e73"
    case .runStageFinished: "612bd259d33c4e2bbcd1ef3c8dba236f"
    case .runProgress: "a8e926e74bec453db5147d21ff286fa0"
    case .runVerified: "3b830868bf5e42e08e6d12af186498e6"
    case .runWrittenBack: "7e9e76159d4a425b91f5265f3632e75b"
    case .runOutput: "40f108549d0d493597fd060f23492a09"
    case .runSQL: "199ef686510d477d80a75808a16215fe"
    case .runMigrated: "91b72484d1c4496ea8ca9da3dfae6e90"
    case .runNotNeeded: "1133f1884cad447fbc1aebc10bccf87d"
    case .runRefused: "7b49159c0594474f9586d306d4cbc1db"
    case .runFailed: "a00ffcb57e684ff39df6c3432b77f69c"
    case .runsFailed: "a9148819ff854baa8e4fd85d30eac2ed"
    case .runBusy: "823f47627f28455c83f5c55be8e8ac72"
    case .runRecovered: "aedb1666f0db428cae1a379b3be4310a"
    case .recoveryFailed: "b898b0cba3674c01bf4fecc71d2d5ae3"
    case .backupCopied: "d8d5b3e26aa748b09203210ebf2dd5a0"
    case .backupNotCopied: "9f81d31c9b3e43238be6039966190d61"
    case .backupRemoved: "61095d46cc34469ca3a003fa630b7651"
    case .backupDamaged: "4809c8f40a1f4574830c6c06a56280df"
    case .backupsVerified: "afdcba9d555f409eae482a47771b741d"
    case .runRehearsed: "d4271ed1976d435a989867ae471e3e70"
    case .waveOpened: "7bcd9c66a9db46179725e42ebb9a7852"
    case .waveDone: "423ebaf5f1d54624be06f1deb4da07ba"
    case .rolloutFinished: "ff633cd0f056472596459f3b9e8e80a9"
    case .rolloutHalted: "714c3f590bb042f0b697c45aeb560f0b"
    case .rolloutResumed: "b623fc4e1bbc45b0956ad08c04d5d7b4"
    case .rolloutApproved: "f96187b40b2e4a04a410109f9b09f875"
    case .entriesLeftOut: "799cbccd1960403894a68b5c64fa5f32"
    case .paused: "e735e2377b6344d293a64021fe2f700d"
    case .resumed: "335e71957f5842e5acea039b80bb5073"
    case .hookRan: "fc445438130b421fa3797fee8463f202"
    case .hookFailed: "bb69754372fd42e6bb1e90cef9f3a6dc"
    case .hookEventsDropped: "81fa2061b41d4fd683c18f81e947aabe"
    case .problem: "1bdac0be878e4299934dc6511c4bd27f"
    }
  }
}

/// One entry of the journal: one line for people, fields for programs.
public struct EventEntry: Sendable, Hashable {
  /// What happened; its identifier is the journal's `MESSAGE_ID`.
  public var kind: EventKind
  /// How urgent the entry is, as the journal's `PRIORITY`.
  public var level: Logger.Level
  /// Without a newline.
  public var message: String
  /// The `INSTAR_` fields that apply, without `INSTAR_EVENT`.
  public var fields: [String: String]

  /// All fields that identify the event and say more about it.
  var namedFields: [String: String] {
    fields.merging(["INSTAR_EVENT": kind.rawValue, "MESSAGE_ID": kind.messageID]) { $1 }
  }

  /// The entry as `journalctl --output=json` shows it, without what the journal adds; with the time, in microseconds
  /// since 1970.
  var journalFields: [String: String] {
    let microseconds = Int64(Date().timeIntervalSince1970 * 1_000_000)
    return namedFields.merging([
      "MESSAGE": message, "PRIORITY": "\(level.priority)", "SYSLOG_IDENTIFIER": "instard",
      "_SOURCE_REALTIME_TIMESTAMP": "\(microseconds)",
    ]) { $1 }
  }
}
