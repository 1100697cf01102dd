internal import GRDB
internal import InstarSchema
internal import InstarStore

/// How many models a to-many relationship must have: `minimumModelCount` and `maximumModelCount`.
struct CountLimit: Hashable {
  private let minimum: Int
  /// `Int.max` for no limit.
  private let maximum: Int

  /// `nil` for a to-one relationship, and for one that may have any number.
  init?(_ relationship: Schema.Relationship) {
    guard !relationship.isToOneRelationship,
      relationship.minimumModelCount > 0 || relationship.maximumModelCount > 0
    else { return nil }
    minimum = relationship.minimumModelCount
    maximum = relationship.maximumModelCount > 0 ? relationship.maximumModelCount : .max
  }

  /// "at most 3".
  private var range: String {
    if maximum == .max { return "at least \(minimum)" }
    return minimum > 0 ? "\(minimum) to \(maximum)" : "at most \(maximum)"
  }

  /// What is wrong with rows that violate the limit.
  func problem(of relationship: String, in version: Schema.Version) -> String {
    "fewer or more models in '\(relationship)' than version \(version) allows, which is \(range)"
  }

  /// Returns the rows that violate the limit; `nil` for none.
  ///
  /// - Parameter path: The relationship, "Folder.notes".
  func violations(_ db: Database, of path: String, in layout: any StoreLayout) throws
    -> AffectedRows?
  {
    guard let link = layout.link(path) else { return nil }
    let (table, reference): (String, InstarStore.ForeignKey)
    switch link.location {
    case .column: return nil
    case .foreignKey(let key): (table, reference) = (link.other.table, key)
    case .joinTable(let name, let own, _): (table, reference) = (name, own)
    }
    // Grouped first: the column that refers to the owner may have no index.
    let counts =
      "(SELECT \(reference.list), count(*) AS n FROM \(table) GROUP BY \(reference.list))"
    let owners = "\(link.owner.table) AS o LEFT JOIN \(counts) AS c"
    return try KeyedRows(
      table: "\(owners) ON \(reference.condition("c", refersTo: "o"))",
      conditions: [
        link.owner.rowCondition, "coalesce(c.n, 0) NOT BETWEEN \(minimum) AND \(maximum)",
      ].compactMap(\.self), keys: link.owner.key.columns.map { "o.\($0)" }
    ).affected(db)
  }
}

extension MigrationPath {
  /// A to-many relationship of the last version with a limit.
  struct LimitedRelationship {
    let entity: String
    let relationship: String
    let limit: CountLimit
    /// The relationship of the first version, "Folder.notes"; `nil` where it is new.
    let origin: String?
    /// Whether the first version has the same limit.
    let isUnchanged: Bool

    var path: String { "\(entity).\(relationship)" }
  }

  /// The to-many relationships of the last version that have a limit.
  var limitedRelationships: [LimitedRelationship] {
    last.entities.flatMap { entity in
      entity.relationships.compactMap { relationship in
        guard let limit = CountLimit(relationship) else { return nil }
        let origin = origin(of: relationship, in: entity.name)
        return LimitedRelationship(
          entity: entity.name, relationship: relationship.name, limit: limit, origin: origin,
          isUnchanged: origin.flatMap(firstLimit) == limit)
      }
    }
  }

  private func firstLimit(of path: String) -> CountLimit? {
    let names = path.split(separator: ".", maxSplits: 1).map(String.init)
    return first.entitiesByName[names[0]]?.relationships.first { $0.name == names.last }
      .flatMap(CountLimit.init)
  }
}
