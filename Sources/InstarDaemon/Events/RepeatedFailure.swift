import InstarSchema
import InstarWire

/// A failure of one store, which the journal has, and the stores that failed in the same way after it.
struct RepeatedFailure<Report: FailureReport>: Sendable, Hashable {
  /// The report that the journal has.
  var first: Report
  /// How many other stores failed in the same way since the last entry about them.
  var count: Int
  /// The first of them.
  var stores: [String]
}

/// A report on one store that may say the same as those on others.
protocol FailureReport: Sendable, Hashable {
  /// What is equal in failures with the same cause.
  associatedtype Kind: Sendable, Hashable
  /// The path of the store.
  var store: String { get }
  /// The plan that knows the store.
  var plan: String? { get }
  /// What is the same in the reports of other stores; `nil` where this is not a failure.
  var failureKind: Kind? { get }
}

extension RunReport: FailureReport {
  var failureKind: FailureKind? { FailureKind(self) }
}

extension ProbeReport: FailureReport {
  var failureKind: UnusableKind? { UnusableKind(self) }
}

/// What is the same in the verdicts on several stores that nobody can use.
struct UnusableKind: Sendable, Hashable {
  private var state: StoreState
  private var plan: String?
  private var code: InstarError.Code?
  private var cause: String

  /// - Returns: `nil` for a store that somebody can use.
  init?(_ report: ProbeReport) {
    guard report.state.isUnusable else { return nil }
    state = report.state
    plan = report.plan
    code = report.error?.code
    cause = FailureKind.generalized(report.reason ?? "", store: report.store)
  }
}
