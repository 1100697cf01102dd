import Foundation
import InstarSchema
import InstarStore

extension ModelContext {
  /// Inserts models of every class of the schema, with random values and links. Nothing is saved.
  ///
  /// Values keep what the schema demands: required values and links are there, unique values differ, and an enum has
  /// one of its cases. An optional value is `nil` in one of five models. The same generator gives the same models.
  ///
  /// - Parameter count: The number of models of each class.
  package func insertRandomModels(
    count: Int, using generator: inout some RandomNumberGenerator
  ) {
    var made: [(entity: ModelEntity, models: [any PersistentModel])] = []
    for entity in stores.entities {
      let values = RandomValues(of: entity, shapes: stores.schema.valueShapes)
      let models = (0..<count).map { number in
        let storage = ModelStorage(entity.descriptor)
        values.fill(storage, number: number, using: &generator)
        return RowObject.make(storage)
      }
      made.append((entity, models))
    }
    for model in made.flatMap(\.models) { insertAny(model) }
    let types = Dictionary(
      firstOf: made.map { (ObjectIdentifier($0.entity.descriptor), $0.models) })
    for (entity, models) in made {
      for (slot, property) in entity.descriptor.properties.enumerated() {
        guard case .relationship(let kind) = property.kind else { continue }
        let destination = stores.schema.modelSet.destination(of: kind)
        link(
          models, slot: slot, kind, to: types[ObjectIdentifier(destination)] ?? [],
          using: &generator)
      }
    }
  }

  /// Links each model by one relationship. Of two ends of which one is to-one, that end is linked.
  private func link(
    _ models: [any PersistentModel], slot: Int, _ kind: Schema.PropertyMetadata.RelationshipKind,
    to others: [any PersistentModel], using generator: inout some RandomNumberGenerator
  ) {
    guard !others.isEmpty, let first = models.first else { return }
    let inverse = first._modelStorage.inverse(ofSlot: slot)
    for (number, model) in models.enumerated() {
      let storage = model._modelStorage
      if kind.isToOne {
        // The same partner for nobody else: of a one-to-one relationship he would lose his first one.
        let partner =
          inverse?.isToOne == true
          ? others[number % others.count] : others.randomElement(using: &generator)
        let isLeftOut = kind.isOptional && Int.random(in: 0..<5, using: &generator) == 0
        if !isLeftOut, storage.toOne(at: slot) == nil {
          storage.setToOne(partner, at: slot, of: model)
        }
      } else if inverse?.isToOne != true {
        let least = kind.metadata.minimumModelCount
        let limit = kind.metadata.maximumModelCount
        let most = min(limit > 0 ? limit : 3, others.count)
        let number = Int.random(in: min(least, most)...max(least, most), using: &generator)
        storage.setToMany(
          MixedModels(Array(others.shuffled(using: &generator).prefix(number))), at: slot, of: model
        )
      }
    }
  }
}

/// Random values for the attributes of one class.
private struct RandomValues {
  let descriptor: ModelDescriptor
  /// The slots whose values differ from model to model.
  let uniqueSlots: Set<Int>
  /// What the types of properties read, by name of the property.
  let shapes: [String: ValueShape]

  init(of entity: ModelEntity, shapes: [String: ValueShape]) {
    descriptor = entity.descriptor
    uniqueSlots = Set(entity.uniqueGroups.flatMap(\.slots) + entity.keySlots)
      .union(entity.keySlot.map { [$0] } ?? [])
    let prefix = "\(entity.descriptor.name)."
    self.shapes = Dictionary(
      firstOf: shapes.filter { $0.key.hasPrefix(prefix) }.map {
        (String($0.key.dropFirst(prefix.count)), $0.value)
      })
  }

  func fill(
    _ storage: ModelStorage, number: Int, using generator: inout some RandomNumberGenerator
  ) {
    for (slot, property) in descriptor.properties.enumerated() {
      guard case .attribute(let kind) = property.kind else { continue }
      let isUnique = uniqueSlots.contains(slot)
      if kind.isOptional, !isUnique, Int.random(in: 0..<5, using: &generator) == 0 { continue }
      storage.slots[slot] = value(
        of: property.name, kind, number: isUnique ? number : nil, using: &generator)
    }
  }

  /// - Parameter number: The number of the model if the value is unique.
  private func value(
    of property: String, _ kind: Schema.PropertyMetadata.AttributeKind, number: Int?,
    using generator: inout some RandomNumberGenerator
  ) -> Slot {
    if let values = shapes[property]?.rawValues,
      let value = number.map({ values[$0 % values.count] })
        ?? values.randomElement(using: &generator)
    {
      return Slot(value)
    }
    if kind.form == nil, kind.transformation == nil {
      let value = Self.value(of: kind.type, number: number, using: &generator)
      if kind.accepts?(value) ?? true { return value }
    }
    return kind.defaultSlot() ?? placeholder(kind) ?? .null
  }

  /// The stored form of an empty value of a Codable type.
  private func placeholder(_ kind: Schema.PropertyMetadata.AttributeKind) -> Slot? {
    func stored<Value>(_ type: Value.Type) -> Slot? {
      // A type that refuses all empty values gets none.
      Placeholder.value(of: type).flatMap { try? kind.slot(of: $0) }
    }
    let type = (kind.valueType as? any OptionalType.Type)?.wrappedType ?? kind.valueType
    return stored(type)
  }

  private static let words = [
    "amber", "birch", "cocoa", "delta", "éclair", "fjord", "grün", "harbour", "it's", "日本",
  ]

  private static func value(
    of type: Schema.AttributeType, number: Int?, using generator: inout some RandomNumberGenerator
  ) -> Slot {
    let any = Int64.random(in: 0..<10_000, using: &generator)
    let whole = number.map { Int64($0) + 1 } ?? any
    switch type {
    case .bool: return .integer(any % 2)
    case .int16, .int32, .int64: return .integer(whole)
    case .double, .float: return .real(Double(whole) + (number == nil ? 0.25 : 0))
    case .decimal: return .text("\(whole).5")
    case .date: return .real(Double(whole) * 86_400)
    case .string:
      let word = words[Int(any) % words.count]
      return .text(number.map { "\(word) \($0 + 1)" } ?? "\(word) \(any)")
    case .url: return .text("https://example.com/\(whole)")
    case .uuid:
      var bytes = (0..<16).map { _ in UInt8.random(in: 0...255, using: &generator) }
      if let number {
        bytes.replaceSubrange(
          0..<4, with: withUnsafeBytes(of: UInt32(truncatingIfNeeded: number)) { Array($0) })
      }
      return .blob(Data(bytes))
    case .data:
      let length = Int(any % 64)
      let random = (0..<length).map { _ in UInt8.random(in: 0...255, using: &generator) }
      return .blob(Data(number.map { Array("\($0) ".utf8) } ?? []) + Data(random))
    case .codable: return .null
    }
  }
}
