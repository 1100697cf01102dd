public import InstarSchema

/// What is the same in the failures of several stores: a plan that throws on each of a thousand stores is one problem.
public struct FailureKind: Sendable, Hashable {
  /// The plan of the runs.
  public var plan: String?
  /// The code of their errors.
  public var code: InstarError.Code
  /// The stage that failed.
  public var stage: String?
  /// The cause, without the store's name, the run and numbers.
  public var cause: String

  /// - Returns: `nil` for a run that did not fail.
  public init?(_ report: RunReport) {
    guard [.failed, .refused].contains(report.result), var error = report.error else {
      return nil
    }
    error.cause = error.cause.replacing(report.run, with: "RUN")
    self.init(error, store: report.store, plan: report.plan)
  }

  /// The kind of an error of one store.
  public init(_ error: InstarError, store: String, plan: String?) {
    self.plan = plan
    code = error.code
    stage = error.stage
    cause = Self.generalized(error.cause, store: store)
  }

  /// Returns a cause without the name of its store and without numbers.
  package static func generalized(_ cause: String, store: String) -> String {
    cause.replacing(store, with: "STORE").replacing(/[0-9]+/, with: "N")
  }
}
