public import InstarSchema

/// An error of a container or context, matched by kind: `catch SwiftDataError.loadIssueModelContainer`.
///
/// Unlike SwiftData's, it carries its cause, as text and as Instar's own error value.
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
  /// What it is as well, said more exactly.
  let detail: Kind?
  /// Why; `nil` in the static members, which are only there to be matched.
  public let cause: InstarError?

  /// A container could not be opened. The cause tells why, and how the store differs where it is none of the schema.
  public static let loadIssueModelContainer = SwiftDataError(.loadIssueModelContainer)
  /// The store is at a later version than the plan's last one.
  public static let backwardMigration = SwiftDataError(.backwardMigration)
  /// The store is at no version of the plan. Such an error is a `loadIssueModelContainer` as well.
  public static let unknownSchema = SwiftDataError(.unknownSchema)
  /// Never thrown by Instar: see `unknownSchema`.
  public static let unknownDataStoreSchema = SwiftDataError(.unknownDataStoreSchema)
  /// A predicate has a part that cannot be said in SQL; the cause names it.
  public static let unsupportedPredicate = SwiftDataError(.unsupportedPredicate)
  /// Never thrown by Instar, which sorts in memory by what SQLite cannot.
  public static let unsupportedSortDescriptor = SwiftDataError(.unsupportedSortDescriptor)
  /// A key path leads to no stored property.
  public static let unsupportedKeyPath = SwiftDataError(.unsupportedKeyPath)
  /// A fetch in batches cannot include changes that are not saved.
  public static let includePendingChangesWithBatchSize = SwiftDataError(
    .includePendingChangesWithBatchSize)
  /// Never thrown by Instar, which sorts the identifiers of models that are not saved too.
  public static let sortingPendingChangesWithIdentifiers = SwiftDataError(
    .sortingPendingChangesWithIdentifiers)
  /// A model cannot be saved or deleted as it is; the cause names the property.
  public static let modelValidationFailure = SwiftDataError(.modelValidationFailure)
  /// Never thrown by Instar: a model that is in no context keeps its values and related models in memory.
  public static let missingModelContext = SwiftDataError(.missingModelContext)
  /// The name of a store's file holds a NUL. Such an error is a `loadIssueModelContainer` as well.
  public static let configurationFileNameContainsInvalidCharacters = SwiftDataError(
    .configurationFileNameContainsInvalidCharacters)
  /// The name of a store's file is longer than 255 bytes. Such an error is a `loadIssueModelContainer` as well.
  public static let configurationFileNameTooLong = SwiftDataError(.configurationFileNameTooLong)
  /// The schemas of the configurations and that of the container do not fit: a configuration has models that the container
  /// does not have, or several leave one of its models out, or keep models in two stores that are related to each other.
  /// Such an error is a `loadIssueModelContainer` as well.
  public static let configurationSchemaNotFoundInContainerSchema = SwiftDataError(
    .configurationSchemaNotFoundInContainerSchema)
  /// Two configurations of a container have one name, one file or one model, or both have no schema. Such an error is a
  /// `loadIssueModelContainer` as well.
  public static let duplicateConfiguration = SwiftDataError(.duplicateConfiguration)
  /// Never thrown by Instar, which keeps no history of its own.
  public static let historyTokenExpired = SwiftDataError(.historyTokenExpired)
  /// Never thrown by Instar, which keeps no history of its own.
  public static let invalidTransactionFetchRequest = SwiftDataError(
    .invalidTransactionFetchRequest)

  init(_ kind: Kind, _ cause: InstarError? = nil, detail: Kind? = nil) {
    self.kind = kind
    self.detail = detail
    self.cause = cause
  }

  /// Why a container could not be opened, as the kind that stands for its code.
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

  /// Matches by kind alone, whatever the cause.
  public static func ~= (pattern: SwiftDataError, error: any Error) -> Bool {
    guard let error = error as? SwiftDataError else { return false }
    return error.kind == pattern.kind || error.detail == pattern.kind
  }

  /// Whether two errors are of one kind, whatever their causes.
  public static func == (left: SwiftDataError, right: SwiftDataError) -> Bool {
    left.kind == right.kind
  }

  /// By kind, as `==` compares.
  public func hash(into hasher: inout Hasher) { hasher.combine(kind) }

  /// The kind and the cause, on several lines.
  public var description: String {
    cause.map { "\(kind.rawValue): \($0)" } ?? kind.rawValue
  }
}
