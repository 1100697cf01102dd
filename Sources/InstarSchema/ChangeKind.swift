/// What a change of schema does to a store, from the least to the most invasive for its rows.
@frozen
public enum ChangeKind: String, Sendable, Codable, Hashable {
  /// Adds an entity or a property.
  case additive
  /// Renames an entity, a property, a table or a column. No value changes.
  case rename
  /// Changes which values are allowed: required, unique, delete rules.
  case rule
  /// Creates or drops indexes.
  case index
  /// Updates what the format keeps beside the app's values: entity numbers, triggers, history.
  case bookkeeping
  /// Copies a table to a new one because `ALTER TABLE` cannot change it.
  case rebuild
  /// Changes how values or links are stored, or where.
  case conversion
  /// Removes rows, values or links.
  case destructive
}
