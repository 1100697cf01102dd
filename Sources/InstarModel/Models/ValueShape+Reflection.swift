package import InstarSchema
import InstarStore

extension Schema {
  /// What the types of this schema's properties read, by "Entity.property", where a type may refuse a stored value.
  /// Empty for a schema without types.
  package var valueShapes: [String: ValueShape] {
    var shapes: [String: ValueShape] = [:]
    for entity in entities {
      guard let model = modelTypes.byEntityName[entity.name] as? any PersistentModel.Type else {
        continue
      }
      for property in model._modelDescriptor.properties {
        guard case .attribute(let kind) = property.kind, kind.transformation == nil,
          kind.accepts != nil, entity.declaresAttribute(property.name)
        else { continue }
        shapes["\(entity.name).\(property.name)"] = ValueShape(of: kind.valueType)
      }
    }
    return shapes
  }
}

extension Schema.Entity {
  /// Whether the entity itself has an attribute, or the fields of a composite one.
  fileprivate func declaresAttribute(_ name: String) -> Bool {
    attributes.contains { $0.name == name || $0.name.hasPrefix("\(name).") }
  }
}

extension ValueShape {
  /// - Parameter outer: The types that contain this one: a type may contain itself, in an array.
  init(of type: any Any.Type, within outer: Set<ObjectIdentifier> = []) {
    if let optional = type as? any OptionalType.Type {
      self = .optional(of: ValueShape(of: optional.wrappedType, within: outer))
    } else if type is any PersistentAttribute.Type {
      self = .named(type: "\(type)")
    } else if let raw = type as? any RawRepresentable.Type, let values = Self.rawValues(of: raw) {
      self = .rawValues(of: values)
    } else if let map = type as? any DictionaryType.Type {
      self = .map(
        keys: ValueShape(of: map.keyType, within: outer),
        values: ValueShape(of: map.valueType, within: outer))
    } else if let list = type as? any ListType.Type {
      self = .list(of: ValueShape(of: list.elementType, within: outer))
    } else if let codable = type as? any Codable.Type, !outer.contains(ObjectIdentifier(type)) {
      self.init(of: CodableForm.of(codable), type, within: outer.union([ObjectIdentifier(type)]))
    } else {
      self = .named(type: String(reflecting: type))
    }
  }

  private init(
    of form: CodableForm, _ type: any Any.Type, within outer: Set<ObjectIdentifier>
  ) {
    switch form {
    case .fields(let fields):
      self = .fields(
        of: Dictionary(
          firstOf: fields.map {
            ($0.name, ValueShape(of: $0.swiftType.type ?? Any.self, within: outer))
          }))
    case .cases(let names): self = .cases(names: names.sorted())
    // The type's own coding: only its full name tells it from another one.
    case .json: self = .named(type: String(reflecting: type))
    }
  }

  private static func rawValues<Value: RawRepresentable>(of type: Value.Type) -> [AttributeValue]? {
    guard let cases = EnumCases.all(of: type) else { return nil }
    let values = cases.compactMap { ($0.rawValue as? any PersistentAttribute)?.attributeValue }
    // The order of cases does not matter.
    return values.count == cases.count ? values.sorted { "\($0)" < "\($1)" } : nil
  }
}

/// `Dictionary`, as a type.
private protocol DictionaryType {
  static var keyType: any Any.Type { get }
  static var valueType: any Any.Type { get }
}

extension Dictionary: DictionaryType {
  static var keyType: any Any.Type { Key.self }
  static var valueType: any Any.Type { Value.self }
}

/// `Array` and `Set`, as types.
private protocol ListType {
  static var elementType: any Any.Type { get }
}

extension Array: ListType {
  static var elementType: any Any.Type { Element.self }
}

extension Set: ListType {
  static var elementType: any Any.Type { Element.self }
}
