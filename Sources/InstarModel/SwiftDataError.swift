public import InstarSchema

/// An error of a container or context, matched by kind: `catch SwiftDataError.loadIssueModelContainer`.
///
/// Unlike SwiftData's, it has a cause, with what failed, why, and what to do next.
public struct SwiftDataError: Error, Sendable, Hashable, CustomStringConvertible {
  enum Kind: String, Sendable {
    case loadIssueModelContainer, backwardMigration, unknownSchema, unknownDataStoreSchema
    case unsupportedPredicate, unsupportedSortDescriptor, unsupportedKeyPath
    case includePendingChangesWithBatchSize, sortingPendingChangesWithIdentifiers
    case modelValidationFailure, missingModelContext
    case configurationFileNameContainsInvalidCharacters, configurationFileNameTooLong
    case configurationSchemaNotFoundInContainerSchema, duplicateConfiguration
    case historyTokenExpired, invalidTransactionFetchRequest
  }

  let kind: Kind
  /// A more specific kind that the error also matches.
  let detail: Kind?
  /// The reason; `nil` in the static members, which are only for matching.
  public let cause: InstarError?

  /// A container cannot be opened. The cause has the reason, and the differences if the store does not match the
  /// schema.
  public static let loadIssueModelContainer = SwiftDataError(.loadIssueModelContainer)
  /// The version of the store is later than the last one of the plan.
  public static let backwardMigration = SwiftDataError(.backwardMigration)
  /// The store does not match any version of the plan. The error also matches `loadIssueModelContainer`.
  public static let unknownSchema = SwiftDataError(.unknownSchema)
  /// Never thrown by Instar: see `unknownSchema`.
  public static let unknownDataStoreSchema = SwiftDataError(.unknownDataStoreSchema)
  /// A part of a predicate cannot be expressed in SQL. The cause names it.
  public static let unsupportedPredicate = SwiftDataError(.unsupportedPredicate)
  /// Never thrown by Instar, which sorts in memory if SQLite cannot.
  public static let unsupportedSortDescriptor = SwiftDataError(.unsupportedSortDescriptor)
  /// A key path does not name a stored property.
  public static let unsupportedKeyPath = SwiftDataError(.unsupportedKeyPath)
  /// A fetch in batches cannot include unsaved changes.
  public static let includePendingChangesWithBatchSize = SwiftDataError(
    .includePendingChangesWithBatchSize)
  /// Never thrown by Instar, which also sorts the identifiers of unsaved models.
  public static let sortingPendingChangesWithIdentifiers = SwiftDataError(
    .sortingPendingChangesWithIdentifiers)
  /// A model cannot be saved or deleted. The cause names the property.
  public static let modelValidationFailure = SwiftDataError(.modelValidationFailure)
  /// Never thrown by Instar, because a model without a context keeps its values and related models in memory.
  public static let missingModelContext = SwiftDataError(.missingModelContext)
  /// The name of a store's file contains a NUL. The error also matches `loadIssueModelContainer`.
  public static let configurationFileNameContainsInvalidCharacters = SwiftDataError(
    .configurationFileNameContainsInvalidCharacters)
  /// The name of a store's file is longer than 255 bytes. The error also matches `loadIssueModelContainer`.
  public static let configurationFileNameTooLong = SwiftDataError(.configurationFileNameTooLong)
  /// The schemas of the configurations do not match that of the container: a configuration has a model that the
  /// container does not have, no configuration has one of its models, or two stores have models that are related to
  /// each other. The error also matches `loadIssueModelContainer`.
  public static let configurationSchemaNotFoundInContainerSchema = SwiftDataError(
    .configurationSchemaNotFoundInContainerSchema)
  /// Two configurations of a container have the same name, file or model, or both have no schema. The error also
  /// matches `loadIssueModelContainer`.
  public static let duplicateConfiguration = SwiftDataError(.duplicateConfiguration)
  /// Transactions after a token were deleted, or the store was replaced by an earlier copy.
  public static let historyTokenExpired = SwiftDataError(.historyTokenExpired)
  /// Never thrown by Instar, which evaluates any predicate of transactions.
  public static let invalidTransactionFetchRequest = SwiftDataError(
    .invalidTransactionFetchRequest)

  init(_ kind: Kind, _ cause: InstarError? = nil, detail: Kind? = nil) {
    self.kind = kind
    self.detail = detail
    self.cause = cause
  }

  /// Returns the error of opening a container, with the kind for the code of its cause.
  package static func opening(_ cause: InstarError) -> SwiftDataError {
    switch cause.code {
    case .storeAhead: SwiftDataError(.backwardMigration, cause)
    case .unknownVersion: SwiftDataError(.loadIssueModelContainer, cause, detail: .unknownSchema)
    default: SwiftDataError(.loadIssueModelContainer, cause)
    }
  }

  package static func duplicate(_ cause: InstarError) -> SwiftDataError {
    SwiftDataError(.loadIssueModelContainer, cause, detail: .duplicateConfiguration)
  }

  package static func invalidFileName(_ cause: InstarError, isTooLong: Bool) -> SwiftDataError {
    SwiftDataError(
      .loadIssueModelContainer, cause,
      detail: isTooLong
        ? .configurationFileNameTooLong : .configurationFileNameContainsInvalidCharacters)
  }

  package static func configurationSchema(_ cause: InstarError) -> SwiftDataError {
    SwiftDataError(
      .loadIssueModelContainer, cause, detail: .configurationSchemaNotFoundInContainerSchema)
  }

  static func validation(_ what: String, _ cause: String, next: String? = nil) -> SwiftDataError {
    SwiftDataError(
      .modelValidationFailure,
      InstarError(.missingRequiredValues, what, cause: cause, next: next))
  }

  /// Matches by kind, with any cause.
  public static func ~= (pattern: SwiftDataError, error: any Error) -> Bool {
    guard let error = error as? SwiftDataError else { return false }
    return error.kind == pattern.kind || error.detail == pattern.kind
  }

  /// Returns whether two errors have the same kind, with any causes.
  public static func == (left: SwiftDataError, right: SwiftDataError) -> Bool {
    left.kind == right.kind
  }

  /// Hashes the kind.
  public func hash(into hasher: inout Hasher) { hasher.combine(kind) }

  /// The kind and the cause, on several lines.
  public var description: String {
    cause.map { "\(kind.rawValue): \($0)" } ?? kind.rawValue
  }
}
