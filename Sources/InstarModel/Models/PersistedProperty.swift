/// The backing variable that `@Model` adds for each persisted property. The value itself is in the model's storage.
@frozen
public struct PersistedProperty: Sendable {
  /// Creates the variable, which has no content.
  @inlinable
  public init() {}
}
