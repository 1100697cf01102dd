import InstarSchema
import InstarSupervisor
import InstarWire
import Logging

/// What the journal says about a probed store.
extension DaemonEvent {
  static func probed(_ report: ProbeReport, _ stateFolder: StateFolder?) -> EventEntry {
    let store = "'\(report.store)'"
    let version = report.version.map { "\($0)" } ?? "an unknown version"
    let reason = report.reason.map { ": \($0)" } ?? ""
    let kind: EventKind
    var level = Logger.Level.warning
    var message: String
    switch report.state {
    case .current:
      (kind, level) = (.storeCurrent, .debug)
      message = "\(store) is current at \(version)"
    case .behind:
      let end = report.planVersion.map { "\($0)" } ?? "the plan's last version"
      message = "\(store) is at \(version), behind \(end)"
      if let hold = report.hold {
        (kind, level) = (.storeHeld, .notice)
        message +=
          ", and \(hold.sentence); to let instard migrate the store, run: "
          + (stateFolder?.releaseCommand(of: hold) ?? hold.releaseCommand)
      } else {
        (kind, level) = (.storeBehind, .info)
      }
    case .ahead:
      kind = .storeAhead
      message = "\(store) is newer than the plan\(reason); \(untouched)"
    case .unversioned:
      kind = .storeUnversioned
      message = unversioned(report)
      message = stateFolder?.completing(message, store: report.store) ?? message
    case .unknown:
      kind = .storeUnknown
      (level, message) = unknown(report)
    case .notAStore:
      kind = .storeNotAStore
      message = "\(store) is not a store\(reason)"
    case .corrupt:
      (kind, level) = (.storeCorrupt, .error)
      message = "\(store) is damaged\(reason); \(untouched)"
    case .encrypted:
      kind = .storeEncrypted
      message = "\(store) is encrypted\(reason); \(untouched)"
    case .unreadable:
      kind = .probeFailed
      message = "\(store) cannot be read\(reason); instard retries when the store changes"
    case .busy:
      (kind, level) = (.storeBusy, .info)
      let holders = report.holdersInWords.map { "; \($0)" } ?? ""
      message = "\(store) is in use\(reason)\(holders); instard retries later"
    }
    return .make(
      kind, level, message, error: report.error, isRetried: report.state == .busy,
      [
        ("INSTAR_STORE", report.store), ("INSTAR_PLAN", report.plan),
        ("INSTAR_PLUGIN", report.plugin), ("INSTAR_FROM", report.version?.description),
        ("INSTAR_TO", report.planVersion?.description), ("INSTAR_STATE", report.state.rawValue),
        ("INSTAR_BYTES", report.sizeBytes.map(String.init)),
      ])
  }

  static func unusable(_ verdicts: RepeatedFailure<ProbeReport>) -> EventEntry {
    let (first, count) = (verdicts.first, verdicts.count)
    let stores =
      switch first.state {
      case .corrupt: count.counted("more store is damaged", "more stores are damaged")
      case .encrypted: count.counted("more store is encrypted", "more stores are encrypted")
      case .notAStore: count.counted("more file is not a store", "more files are not stores")
      default: count.counted("more store cannot be probed", "more stores cannot be probed")
      }
    let next =
      first.state == .unreadable
      ? listingFailed : "to list them, run: instarctl stores --state \(first.state.rawValue)"
    // Its advice is about one store only.
    var error = first.error
    error?.next = next
    error?.store = nil
    return .make(
      .storesUnusable, first.state == .corrupt ? .error : .warning,
      "\(stores), like '\(first.store)': \(first.reason ?? "no cause was given") "
        + "(\(names(verdicts.stores, of: count)))" + (error == nil ? "; \(next)" : ""),
      error: error,
      [
        ("INSTAR_PLAN", first.plan), ("INSTAR_PLUGIN", first.plugin),
        ("INSTAR_STATE", first.state.rawValue), ("INSTAR_COUNT", String(count)),
      ])
  }

  private static let untouched = "instard does not change it"

  private static func unversioned(_ report: ProbeReport) -> String {
    let fitting = report.fittingVersions ?? report.version.map { [$0] } ?? []
    let adopted = fitting.count == 1 ? "\(fitting[0])" : "VERSION"
    return "'\(report.store)' declares no version that the plan knows, but its structure matches "
      + fitting.map { "\($0)" }.joined(separator: ", ") + "; to adopt it, run: "
      + CommandText.migrate(
        report.store, plugins: [report.plugin].compactMap(\.self), adopting: adopted)
  }

  private static func unknown(_ report: ProbeReport) -> (level: Logger.Level, message: String) {
    let reason = report.reason.map { ": \($0)" } ?? ""
    if let error = report.error { return (.warning, line(error)) }
    guard let nearest = report.nearestVersion, nearest == report.version || report.plan != nil
    else {
      // Not a problem: the plugin may be installed tomorrow.
      return (.info, "no plugin knows '\(report.store)'\(reason)")
    }
    let plan = report.plan.map { " to plan '\($0)'" } ?? ""
    let differences = report.differences.prefix(5).joined(separator: "; ")
    return (
      .warning,
      "'\(report.store)' is unknown\(plan)\(reason)"
        + (differences.isEmpty ? "" : "; the nearest version is \(nearest): \(differences)")
        + "; \(untouched)"
    )
  }
}
