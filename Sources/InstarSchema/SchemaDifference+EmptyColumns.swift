// New required properties of ordinary tables. SQLite has no NOT NULL column that is empty for a while, so existing rows
// need the value while the schema changes: `didMigrate` comes too late.

extension SchemaDifference {
  /// Whether a change adds a NOT NULL column to an ordinary table and existing rows have no value for it.
  ///
  /// Only a transform of the stage can then give them one. A property in several columns has no such column.
  public func addsEmptyColumn(_ change: Change) -> Bool {
    guard !new.format.hasMetadata, let need = change.rowsInNeed, need.property == nil,
      let property = change.property, let entity = new.entity(named: change.entity)
    else { return false }
    if let attribute = entity.attributes.first(where: { $0.name == property }) {
      // SQLite itself fills a column with a DEFAULT, a generated column and an integer key.
      return attribute.column?.defaultValue == nil && attribute.column?.generated == nil
        && !entity.keyAttributes.contains { $0.name == property }
    }
    return entity.relationships.contains { $0.name == property }
  }

  /// Returns what gives existing rows a value of a property in an empty column.
  public func cureOfEmptyColumn(_ change: Change) -> String {
    let property = change.property ?? ""
    let isAttribute =
      new.entity(named: change.entity)?.attributes
      .contains { $0.name == property } == true
    return Self.cureOfEmptyColumn("\(change.entity).\(property)", isAttribute: isAttribute)
  }

  /// Returns what gives existing rows a value of a property in an empty column; `path` is "Note.title".
  public static func cureOfEmptyColumn(_ path: String, isAttribute: Bool) -> String {
    let twice =
      "add \(path) as optional in one version, set it in didMigrate, and require it in the next version"
    guard isAttribute else { return twice }
    return
      "give \(path) an initial value, which didMigrate can replace; or set it in a Transform of a transform "
      + "stage; or \(twice)"
  }
}
