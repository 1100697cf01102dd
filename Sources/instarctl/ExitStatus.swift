import InstarSchema
import InstarWire

/// The exit status of instarctl. Scripts rely on the numbers.
enum ExitStatus: Int32, Sendable {
  case done = 0
  case failed = 1
  case usage = 2
  case refused = 3
  case busy = 4
  case notFound = 5
  case notReachable = 6

  /// For several stores the most serious status counts: one that failed hides one that was busy.
  private var gravity: Int {
    switch self {
    case .done: 0
    case .busy: 1
    case .notFound: 2
    case .refused: 3
    case .notReachable: 4
    case .failed: 5
    case .usage: 6
    }
  }

  static func gravest(_ first: ExitStatus, _ second: ExitStatus) -> ExitStatus {
    first.gravity >= second.gravity ? first : second
  }

  init(for error: InstarError) {
    self.init(for: error.code)
  }

  /// The most serious status of several errors; `done` without an error.
  init(for errors: [InstarError]) {
    self = errors.reduce(.done) { .gravest($0, ExitStatus(for: $1)) }
  }

  init(for code: InstarError.Code) {
    switch code {
    case .missingStore, .missingPlugin, .missingBackup, .missingFile:
      self = .notFound
    case .busyStore:
      self = .busy
    case .daemonNotReachable, .coordinationFailed:
      self = .notReachable
    case .wrongUsage:
      self = .usage
    case .notAStore, .corruptStore, .encryptedStore, .unreadableStore, .unsafePath, .noSpace,
      .heldStore, .damagedBackup,
      .unknownVersion, .storeAhead, .unversionedStore, .missingRequiredValues,
      .duplicateUniqueValues, .noMigrationPath, .invalidPlan, .needsCustomStage,
      .incompleteSchema, .ambiguousPlan, .noPlan, .notASchema,
      .unconfirmedAdoption, .unacceptedLoss, .modelCount, .notAPlugin, .wrongABI, .untrustedPlugin,
      .unsignedPlugin, .pluginLoadFailed,
      .invalidKey,
      .unsupported, .invalidConfiguration, .notPermitted, .rolloutRefused:
      self = .refused
    default:
      self = .failed
    }
  }

  init(for report: RunReport) {
    switch report.result {
    case .migrated, .restored, .rehearsed, .current: self = .done
    case .busy: self = .busy
    case .failed:
      // Whether damage is found before the run begins or later depends on the damaged page only.
      let isDamaged = report.error?.code == .corruptStore && report.error?.state == "unchanged"
      self = isDamaged ? .refused : .failed
    case .refused:
      let isMissing = report.error.map { ExitStatus(for: $0) == .notFound } ?? false
      self = isMissing ? .notFound : .refused
    }
  }

  init(for report: VerificationReport) {
    switch report.state {
    case .sound: self = .done
    case .damaged: self = .refused
    case .unverified: self = report.errors.first.map { ExitStatus(for: $0) } ?? .failed
    }
  }

  init(for report: PlanReport) {
    if let error = report.error {
      self.init(for: error)
    } else if report.findings.contains(where: { $0.severity == .error }) {
      self = .refused
    } else {
      switch report.probe.state {
      case .current, .behind: self = .done
      // With --adopt such a store has a migration.
      case .unversioned, .unknown: self = report.migration == nil ? .refused : .done
      case .busy: self = .busy
      case .ahead, .notAStore, .corrupt, .encrypted, .unreadable: self = .refused
      }
    }
  }
}
