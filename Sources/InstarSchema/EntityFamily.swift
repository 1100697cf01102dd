/// The entities of a schema in which some inherit, for the properties of an entity that return others. Counts for
/// nothing when entities are compared, and does not travel.
///
/// Invariant: the entities in here have no family of their own, so that nothing refers to itself; they get this one
/// when they are handed out.
struct EntityFamily: Sendable, Hashable {
  let entities: [Schema.Entity]

  init(_ entities: [Schema.Entity]) {
    self.entities = entities.map { entity in
      var entity = entity
      if !entity.family.entities.isEmpty { entity.family = EntityFamily([]) }
      return entity
    }
  }

  func entity(named name: String) -> Schema.Entity? {
    entities.first { $0.name == name }.map(connected)
  }

  func connected(_ entity: Schema.Entity) -> Schema.Entity {
    var entity = entity
    entity.family = self
    return entity
  }

  static func == (left: EntityFamily, right: EntityFamily) -> Bool { true }
  func hash(into hasher: inout Hasher) {}
}
