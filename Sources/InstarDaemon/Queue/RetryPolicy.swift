import InstarConfiguration
import InstarSchema

/// Whether it can help to try a store again although neither the store nor the plugins changed.
///
/// The only place that decides this, by the error's code.
enum RetryPolicy {
  /// The obstacle goes away without a change of the store: retry for as long as it takes.
  case always
  /// It may have been an accident: retry a few times.
  case fewTimes
  /// The same store and the same plugin give the same error.
  case never

  init(for code: InstarError.Code?) {
    switch code {
    case .busyStore, .noSpace, .limitReached:
      self = .always
    // What the store is.
    case .notAStore, .corruptStore, .encryptedStore, .unsafePath, .heldStore,
      // How it fits to the plans.
      .unknownVersion, .storeAhead, .unversionedStore, .missingRequiredValues,
      .duplicateUniqueValues, .noMigrationPath, .invalidPlan, .needsCustomStage, .incompleteSchema,
      .ambiguousPlan, .noPlan, .unconfirmedAdoption, .unacceptedLoss, .modelCount,
      // What the plugin's code does with it.
      .stageFailed, .workerExited, .outputLimit, .workerLimit, .verificationFailed, .rowsLost,
      .brokenReferences, .invariantViolated,
      .unexpectedStructure, .modelNotInSchema, .invalidModel, .unsupported,
      // What the plugin is.
      .notAPlugin, .wrongABI, .untrustedPlugin, .unsignedPlugin, .missingPlugin:
      self = .never
    default:
      self = .fewTimes
    }
  }
}

extension Configuration.Retry {
  /// `first`, doubled for every failure after the first one, at most `most`.
  func delay(failures: Int) -> Duration {
    var delay = first
    for _ in 1..<max(1, failures) where delay < most { delay *= 2 }
    return min(delay, most)
  }
}
