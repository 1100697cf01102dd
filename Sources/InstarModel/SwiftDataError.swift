public import InstarSchema

/// An error of a container or context, matched by kind: `catch SwiftDataError.loadIssueModelContainer`.
///
/// Unlike SwiftData's, it carries its cause, as text and as Instar's own error value.
public struct SwiftDataError: Error, Sendable, CustomStringConvertible {
  enum Kind: String, Sendable {
    case loadIssueModelContainer, backwardMigration, unknownSchema, unknownDataStoreSchema
    case unsupportedPredicate, unsupportedSortDescriptor, unsupportedKeyPath
    case includePendingChangesWithBatchSize, modelValidationFailure, missingModelContext
    case configurationFileNameContainsInvalidCharacters, historyTokenExpired
  }

  let kind: Kind
  /// `nil` in the static members, which are only there to be matched.
  public let cause: InstarError?

  public static let loadIssueModelContainer = SwiftDataError(.loadIssueModelContainer)
  public static let backwardMigration = SwiftDataError(.backwardMigration)
  public static let unknownSchema = SwiftDataError(.unknownSchema)
  public static let unknownDataStoreSchema = SwiftDataError(.unknownDataStoreSchema)
  public static let unsupportedPredicate = SwiftDataError(.unsupportedPredicate)
  public static let unsupportedSortDescriptor = SwiftDataError(.unsupportedSortDescriptor)
  public static let unsupportedKeyPath = SwiftDataError(.unsupportedKeyPath)
  public static let includePendingChangesWithBatchSize = SwiftDataError(
    .includePendingChangesWithBatchSize)
  public static let modelValidationFailure = SwiftDataError(.modelValidationFailure)
  public static let missingModelContext = SwiftDataError(.missingModelContext)
  public static let configurationFileNameContainsInvalidCharacters = SwiftDataError(
    .configurationFileNameContainsInvalidCharacters)
  public static let historyTokenExpired = SwiftDataError(.historyTokenExpired)

  init(_ kind: Kind, _ cause: InstarError? = nil) {
    self.kind = kind
    self.cause = cause
  }

  static func loadIssue(_ cause: InstarError) -> SwiftDataError {
    SwiftDataError(.loadIssueModelContainer, cause)
  }

  static func configuration(_ cause: InstarError) -> SwiftDataError {
    SwiftDataError(.loadIssueModelContainer, cause)
  }

  static func validation(_ what: String, _ cause: String, next: String? = nil) -> SwiftDataError {
    SwiftDataError(
      .modelValidationFailure,
      InstarError(.missingRequiredValues, what, cause: cause, next: next))
  }

  /// Matches by kind alone, whatever the cause.
  public static func ~= (pattern: SwiftDataError, error: any Error) -> Bool {
    (error as? SwiftDataError)?.kind == pattern.kind
  }

  public var description: String {
    cause.map { "\(kind.rawValue): \($0)" } ?? kind.rawValue
  }
}
