import InstarSchema
import InstarTestSupport

/// Versions of a schema that follow each other by random lightweight changes; the same for the same seed.
struct RandomVersions {
  private var random: SeededGenerator
  private let format: StoreFormat
  private var entities: [Schema.Entity] = []
  private var names = 0

  /// - Returns: Two to five versions.
  static func make(seed: UInt64, _ format: StoreFormat) -> [Schema] {
    var versions = RandomVersions(random: SeededGenerator(seed: seed), format: format)
    return versions.make()
  }

  private init(random: SeededGenerator, format: StoreFormat) {
    self.random = random
    self.format = format
  }

  private mutating func make() -> [Schema] {
    entities = (0..<2).map { number in entity(named: "Entity\(number)") }
    addLink()
    var schemas = [schema(1)]
    for number in 2...(3 + Int.random(in: 0...2, using: &random)) {
      // Original names may stay in the source when the next version is written.
      if Bool.random(using: &random) { forgetOriginalNames() }
      for _ in 0...Int.random(in: 0...2, using: &random) { change() }
      schemas.append(schema(number))
    }
    return schemas
  }

  private func schema(_ number: Int) -> Schema {
    Schema(entities: entities, version: Schema.Version(number, 0, 0))
  }

  private mutating func entity(named name: String) -> Schema.Entity {
    var entity = Schema.Entity(name: name)
    if format == .plain {
      entity.table = Schema.Table(name.lowercased())
      entity.attributes = [Schema.Attribute(name: "id", type: .int64)]
    }
    for _ in 0...Int.random(in: 1...3, using: &random) {
      let attribute = attribute()
      if !entity.attributes.contains(where: { $0.name == attribute.name }) {
        entity.attributes.append(attribute)
      }
    }
    return entity
  }

  private mutating func attribute() -> Schema.Attribute {
    // Few names, so that one that was removed comes back.
    let name = "p\(Int.random(in: 0...30, using: &random))x\(names % 3)"
    names += 1
    let types: [Schema.AttributeType] = [.string, .int64, .double]
    let type = types[Int.random(in: 0..<3, using: &random)]
    let isRequired = Bool.random(using: &random)
    return Schema.Attribute(
      name: name, type: type, isOptional: !isRequired,
      defaultValue: isRequired ? value(of: type) : nil)
  }

  private mutating func value(of type: Schema.AttributeType) -> AttributeValue {
    let number = Int64.random(in: 1...9, using: &random)
    return switch type {
    case .string: .text("default \(number)")
    case .double: .real(Double(number) / 2)
    default: .integer(number)
    }
  }

  private mutating func addLink() {
    guard entities.count > 1, entities[0].relationships.isEmpty, entities[1].relationships.isEmpty
    else { return }
    entities[0].relationships = [
      Schema.Relationship(
        name: "owner", destination: entities[1].name, inverseName: "parts",
        isToOneRelationship: true)
    ]
    entities[1].relationships = [
      Schema.Relationship(
        name: "parts", destination: entities[0].name, inverseName: "owner",
        isToOneRelationship: false)
    ]
  }

  private mutating func removeLinks() {
    for index in entities.indices { entities[index].relationships = [] }
  }

  private mutating func forgetOriginalNames() {
    for index in entities.indices {
      entities[index].originalName = entities[index].name
      for place in entities[index].attributes.indices {
        entities[index].attributes[place].originalName = entities[index].attributes[place].name
      }
      for place in entities[index].relationships.indices {
        entities[index].relationships[place].originalName =
          entities[index].relationships[place].name
      }
    }
  }

  private mutating func change() {
    let index = Int.random(in: entities.indices, using: &random)
    let first = format == .plain ? 1 : 0
    let places = entities[index].attributes.indices.dropFirst(first)
    switch Int.random(in: 0..<12, using: &random) {
    case 0, 1, 2: append(attribute(), to: index)
    case 3:
      if places.count > 1, let place = places.randomElement(using: &random) {
        entities[index].attributes.remove(at: place)
      }
    case 4, 5:
      if let place = places.randomElement(using: &random) { rename(place, of: index) }
    case 6:
      if let place = places.randomElement(using: &random) {
        entities[index].attributes[place].isOptional = true
        entities[index].attributes[place].storedDefault = nil
      }
    case 7, 8:
      if let place = places.randomElement(using: &random) {
        let type = entities[index].attributes[place].type
        entities[index].attributes[place].isOptional = false
        entities[index].attributes[place].storedDefault = value(of: type)
      }
    case 9:
      if entities[0].relationships.isEmpty { addLink() } else { removeLinks() }
    case 10:
      if entities.count < 4 { entities.append(entity(named: "Entity\(entities.count + names)")) }
    default:
      if let name = places.randomElement(using: &random).map({ entities[index].attributes[$0].name }
      ) {
        entities[index].indices = entities[index].indices.isEmpty ? [[name]] : []
      }
    }
    for index in entities.indices {
      let known = Set(entities[index].attributes.map(\.name))
      entities[index].indices.removeAll { !known.isSuperset(of: $0) }
    }
  }

  private mutating func append(_ attribute: Schema.Attribute, to index: Int) {
    let names = Set(entities[index].attributes.map { $0.name.lowercased() })
    if !names.contains(attribute.name) { entities[index].attributes.append(attribute) }
  }

  private mutating func rename(_ place: Int, of index: Int) {
    let name = attribute().name
    guard !entities[index].attributes.contains(where: { $0.name == name }) else { return }
    let old = entities[index].attributes[place].name
    entities[index].attributes[place].name = name
    entities[index].attributes[place].originalName = old
    entities[index].indices = []
  }
}
