import InstarSchema
import InstarStore

/// The triggers by which Core Data updates derived attributes. A change of schema drops them first, and creates those
/// of the new version's attributes at its end.
struct DerivedTriggers {
  let dropSteps: [ChangeStep]
  private(set) var createSteps: [ChangeStep] = []

  private static func step(
    _ sql: String, _ comment: String, rowChange: RowChange, table: String
  ) -> ChangeStep {
    ChangeStep(
      sql, comment, .bookkeeping, rowChange: rowChange, table: table,
      reason: "keeps the triggers of derived attributes")
  }

  /// - Throws: `unsupported` for a derived attribute whose triggers only Apple's frameworks can create. Nothing was
  ///   changed.
  init(
    of session: SQLSession, from old: CoreDataLayout, to new: CoreDataLayout,
    _ difference: SchemaDifference
  ) throws {
    let triggers = try session.rows(
      "SELECT name, sql, tbl_name FROM sqlite_schema WHERE type = 'trigger' AND name GLOB 'Z_DA_*' "
        + "ORDER BY rowid"
    ) { (name: $0.text(at: 0), sql: $0.text(at: 1), table: $0.text(at: 2)) }
    dropSteps = triggers.map {
      Self.step(
        "DROP TRIGGER \($0.name.quoted(by: UInt8(ascii: "\"")))", "drops trigger \($0.name)",
        rowChange: .none, table: $0.table)
    }
    let sqls = Set(triggers.map(\.sql))
    // If the store's triggers differ from those that Instar would create, Instar does not know the right ones.
    let known = DerivedAttribute.all(in: old)
    let areKnown = known.allSatisfy { sqls.isSuperset(of: $0.triggerStatements) }
    let made = areKnown ? DerivedAttribute.all(in: new) : []
    let shrinking = Self.tablesLosingRows(from: old, to: new, difference)
      .union(MovedLinks.all(from: old, to: new, difference).map(\.table))
    for entity in new.entities {
      for column in entity.attributes where column.attribute.derivation != nil {
        let name = column.attribute.name
        let before = difference.entities.first { $0.new.name == entity.name }
        let source = before?.attributes.first { $0.new.name == name }?.old
        if let attribute = made.first(where: { $0.entity == entity.name && $0.name == name }) {
          createSteps += attribute.triggerStatements.map {
            Self.step(
              $0, "creates a trigger of \(entity.name).\(name)", rowChange: .none,
              table: entity.table)
          }
          if source?.derivation != column.attribute.derivation
            || shrinking.contains(attribute.countedTable)
          {
            createSteps.append(
              Self.step(
                attribute.countStatement, "computes \(entity.name).\(name)",
                rowChange: .keepsValues, table: entity.table))
          }
          continue
        }
        let kept = triggers.filter { $0.name.contains("_\(entity.name)_\(name)_") }
        guard source == column.attribute, before?.old?.name == entity.name, !kept.isEmpty,
          old.tables == new.tables, !kept.contains(where: { Self.reads($0, anyOf: shrinking) })
        else {
          throw InstarError(
            .unsupported, "cannot change the schema",
            cause:
              "\(entity.name).\(name) is derived by triggers that only Apple's frameworks can create",
            next: "let the app itself migrate this store, or leave '\(name)' out")
        }
        createSteps += kept.map {
          Self.step($0.sql, "restores trigger \($0.name)", rowChange: .none, table: $0.table)
        }
      }
    }
  }

  /// Whether a trigger is of one of these tables, or names one. Its values may be those of rows that are deleted, or
  /// whose links end.
  private static func reads(
    _ trigger: (name: String, sql: String, table: String), anyOf tables: Set<String>
  ) -> Bool {
    tables.contains { trigger.table == $0 || trigger.sql.contains($0) }
  }

  /// The tables of the new version that lack rows of their old table, because some of its entities are removed.
  private static func tablesLosingRows(
    from old: CoreDataLayout, to new: CoreDataLayout, _ difference: SchemaDifference
  ) -> Set<String> {
    let losing = Set(difference.removedEntities.compactMap { old.entity(named: $0.name)?.table })
    return Set(
      new.entities.filter { entity in
        difference.sourceName(of: entity.name).flatMap { old.entity(named: $0)?.table }
          .map(losing.contains) ?? false
      }.map(\.table))
  }
}
