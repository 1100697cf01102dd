import InstarSchema
import InstarWire

/// One statement of a change of schema, with what it does and what it touches.
struct ChangeStep: Sendable {
  var sql: String
  /// "adds column ZRATING".
  var comment: String
  var kind: ChangeKind
  /// The most that the statement does to rows of any store.
  var rowChange: RowChange
  var table: String
  var column: String?
  /// By its name in the new version; by its old name where the new version does not have it.
  var entity: String?
  var property: String?
  /// Why the statement is needed; `nil` where its comment says it, or the difference of the schemas.
  var reason: String?

  init(
    _ sql: String, _ comment: String, _ kind: ChangeKind, rowChange: RowChange, table: String,
    column: String? = nil, entity: String? = nil, property: String? = nil, reason: String? = nil
  ) {
    self.sql = sql
    self.comment = comment
    self.kind = kind
    self.rowChange = rowChange
    self.table = table
    self.column = column
    self.entity = entity
    self.property = property
    self.reason = reason
  }

  /// The changes between two schemas, each with its statements, then those that only the format needs: rebuilds, entity
  /// numbers, indexes of relationships.
  ///
  /// - Parameter steps: In the order in which they run.
  static func plannedChanges(
    _ changes: [SchemaDifference.Change], _ steps: [ChangeStep]
  ) -> [PlannedChange] {
    var planned = changes.map {
      PlannedChange(kind: $0.kind, reason: $0.sentence, entity: $0.entity, property: $0.property)
    }
    let schemaChanges = planned.indices
    for (index, step) in steps.enumerated() {
      let statement = PlannedStatement(position: index + 1, sql: step.sql, comment: step.comment)
      let same = schemaChanges.filter {
        planned[$0].entity == step.entity && planned[$0].property == step.property
      }
      let reason = step.reason ?? step.comment
      // A statement for a property serves its change, whatever kind that is; one for an entity only its own kind: the
      // same entity may be renamed and get other indexes.
      let found =
        same.first { planned[$0].kind == step.kind }
        ?? (step.property == nil ? nil : same.first)
        ?? planned.indices.dropFirst(schemaChanges.count).first {
          planned[$0].kind == step.kind && planned[$0].reason == reason
        }
      if let found {
        planned[found].table = planned[found].table ?? step.table
        planned[found].column = planned[found].column ?? step.column
        planned[found].statements.append(statement)
      } else {
        planned.append(
          PlannedChange(
            kind: step.kind, reason: reason, entity: step.entity, property: step.property,
            table: step.table, column: step.column, statements: [statement]))
      }
    }
    return planned
  }
}
