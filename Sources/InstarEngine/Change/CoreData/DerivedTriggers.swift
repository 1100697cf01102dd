import InstarSchema
import InstarStore

/// The triggers by which Core Data keeps derived attributes up, over a change of schema: they are dropped before it and
/// made again after it, for the attributes that the new version has.
struct DerivedTriggers {
  let dropStatements: [String]
  private(set) var createStatements: [String] = []

  /// - Throws: `unsupported` for a derived attribute whose triggers only Apple's frameworks can make. Nothing was changed.
  init(
    of session: SQLSession, from old: CoreDataLayout, to new: CoreDataLayout,
    _ difference: SchemaDifference
  ) throws {
    let statement = try session.statement(
      "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND name GLOB 'Z_DA_*' "
        + "ORDER BY rowid")
    var triggers: [(name: String, sql: String)] = []
    while try statement.step() { triggers.append((statement.text(at: 0), statement.text(at: 1))) }
    statement.reset()
    dropStatements = triggers.map { "DROP TRIGGER \($0.name.quoted(by: UInt8(ascii: "\"")))" }
    let sqls = Set(triggers.map(\.sql))
    // Where the store's own triggers are not those that are known here, those known are not right for it.
    let known = DerivedAttribute.all(in: old)
    let areKnown = known.allSatisfy { sqls.isSuperset(of: $0.triggerStatements) }
    let made = areKnown ? DerivedAttribute.all(in: new) : []
    for entity in new.entities {
      for column in entity.attributes where column.attribute.derivation != nil {
        let name = column.attribute.name
        let before = difference.entities.first { $0.new.name == entity.name }
        let source = before?.attributes.first { $0.new.name == name }?.old
        if let attribute = made.first(where: { $0.entity == entity.name && $0.name == name }) {
          createStatements += attribute.triggerStatements
          if source?.derivation != column.attribute.derivation {
            createStatements.append(attribute.countStatement)
          }
          continue
        }
        let kept = triggers.filter { $0.name.contains("_\(entity.name)_\(name)_") }
        guard source == column.attribute, before?.old?.name == entity.name, !kept.isEmpty,
          old.tables == new.tables
        else {
          throw InstarError(
            .unsupported, "cannot change the schema",
            cause:
              "\(entity.name).\(name) is derived by triggers that only Apple's frameworks can make",
            next: "let the app itself migrate this store, or leave '\(name)' out")
        }
        createStatements += kept.map(\.sql)
      }
    }
  }
}
