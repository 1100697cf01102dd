public import InstarSchema

/// One change that a stage makes to a store: what it is, what it touches, and the statements that make it.
///
/// Text, JSON and notes about a planned migration are made from these values. The same code makes them in a preview,
/// on an empty store, and in a run, on the clone.
public struct PlannedChange: Sendable, Codable, Hashable {
  /// The class of the change, which says what it does to rows.
  public var kind: ChangeKind
  /// What changes and, where the schemas do not say it, why: "renames Book.name to title".
  public var reason: String
  /// The entity, by its name in the new version; by its old name where the new version does not have it.
  public var entity: String?
  /// The attribute or relationship, named as the entity is.
  public var property: String?
  /// The first table that the statements touch.
  public var table: String?
  /// The column that the first of these statements touches.
  public var column: String?
  /// Empty where no statement is needed, or where the statements of another change make this one too: a rebuild makes
  /// all changes of its table.
  public var statements: [PlannedStatement]

  /// A change; what it does not touch is left out.
  public init(
    kind: ChangeKind, reason: String, entity: String? = nil, property: String? = nil,
    table: String? = nil, column: String? = nil, statements: [PlannedStatement] = []
  ) {
    self.kind = kind
    self.reason = reason
    self.entity = entity
    self.property = property
    self.table = table
    self.column = column
    self.statements = statements
  }
}

/// One SQL statement of a planned change.
public struct PlannedStatement: Sendable, Codable, Hashable {
  /// The statement's position among all statements of the stage, from 1. They run in this order.
  public var position: Int
  /// The SQL. Only a statement of the plan has parameters; their values are not shown.
  public var sql: String
  /// What the statement does: "adds column ZRATING".
  public var comment: String

  package init(position: Int, sql: String, comment: String) {
    self.position = position
    self.sql = sql
    self.comment = comment
  }
}
