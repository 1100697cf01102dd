import Foundation
import InstarSchema

/// Reads a `CoreDataModel` from the archive of an `NSManagedObjectModel` (Core Data layout, section 2.5).
struct ModelArchiveReader {
  typealias Problem = KeyedArchive.Problem
  private typealias Value = KeyedArchive.Value
  private typealias Record = KeyedArchive.Record

  let archive: KeyedArchive
  private var details: [String: CoreDataModel.EntityDetails] = [:]

  init(_ bytes: [UInt8]) throws(Problem) {
    archive = try KeyedArchive(bytes)
  }

  mutating func model() throws(Problem) -> CoreDataModel {
    guard let root = try archive.record(archive.root) else { throw .malformed }
    var entities: [Schema.Entity] = []
    for (name, value) in try archive.entries(root["NSEntities"]) {
      guard let record = try archive.record(value) else { continue }
      entities.append(try entity(name, record))
    }
    guard !entities.isEmpty else { throw .malformed }
    removeTransientInverses(from: &entities)
    let identifiers = try archive.texts(root["NSVersionIdentifiers"])
    let version = identifiers.count == 1 ? Schema.Version(identifiers[0]) : nil
    return CoreDataModel(
      schema: Schema(entities: entities, version: version ?? Schema.Version(1, 0, 0)),
      details: details)
  }

  /// A relationship whose inverse is transient is stored as one without an inverse.
  private func removeTransientInverses(from entities: inout [Schema.Entity]) {
    for entity in entities.indices {
      for position in entities[entity].relationships.indices {
        let relationship = entities[entity].relationships[position]
        guard let inverse = relationship.inverseName,
          details[relationship.destination]?.transientRelationships.contains(inverse) == true
        else { continue }
        entities[entity].relationships[position].inverseName = nil
      }
    }
  }

  // MARK: Entities

  private mutating func entity(_ name: String, _ record: Record) throws(Problem) -> Schema.Entity {
    var details = CoreDataModel.EntityDetails()
    var entity = Schema.Entity(
      name: name, originalName: try archive.text(record["NSRenamingIdentifier"]))
    entity.isAbstract = try archive.boolean(record["NSIsAbstract"]) ?? false
    entity.hashModifier = try archive.text(record["NSVersionHashModifier"])
    // An entity repeats its inherited properties.
    var inherited: Set<String> = []
    if let superentity = try archive.record(record["NSSuperentity"]) {
      entity.superentityName = try archive.text(superentity["NSEntityName"])
      for (name, _) in try archive.entries(superentity["NSProperties"]) { inherited.insert(name) }
    }
    var indexed: [String] = []
    for (name, value) in try archive.entries(record["NSProperties"]) where !inherited.contains(name)
    {
      guard let property = try archive.record(value) else { continue }
      switch property.className {
      case "NSRelationshipDescription":
        if try flag("NSIsTransient", Flag.transient, of: property) {
          details.transientRelationships.append(name)
        } else {
          entity.relationships.append(try relationship(name, property))
        }
      case "NSFetchedPropertyDescription":
        details.fetchedProperties.append(name)
      case "NSCompositeAttributeDescription":
        entity.attributes += try composite(name, property, &details)
      default:
        entity.attributes.append(try attribute(name, property, &details))
        if try archive.boolean(property["NSIsIndexed"]) == true { indexed.append(name) }
      }
    }
    for group in try archive.elements(record["NSUniqueTuples"]) {
      let names = try archive.texts(group)
      if !names.isEmpty { entity.uniquenessConstraints.append(names) }
    }
    try readIndexes(of: &entity, record, indexed: indexed, &details)
    self.details[name] = details
    return entity
  }

  /// Frameworks since 2017 have fetch indexes, and repeat them as compound ones. Earlier ones have indexed attributes
  /// and compound indexes.
  private func readIndexes(
    of entity: inout Schema.Entity, _ record: Record, indexed: [String],
    _ details: inout CoreDataModel.EntityDetails
  ) throws(Problem) {
    let properties = try archive.entries(record["NSProperties"])
    let (withoutColumn, toOne) = try propertiesWithoutOwnIndex(properties)
    guard record.fields["NSFetchIndexDescriptions"] != nil else {
      entity.indices = indexed.filter { !withoutColumn.contains($0) }.map { [$0] }
      for group in try archive.elements(record["NSCompoundIndexes"]) {
        let names = try archive.texts(group)
        if !names.isEmpty, withoutColumn.isDisjoint(with: names) { entity.indices.append(names) }
      }
      return
    }
    let names = Set(properties.map(\.key))
    for value in try archive.elements(record["NSFetchIndexDescriptions"]) {
      guard let index = try archive.record(value),
        let name = try archive.text(index["NSIndexName"]),
        let elements = try elements(of: index, named: name, over: names, &details)
      else { continue }
      let predicate = try predicateText(index["NSPartialIndexPredicate"], depth: 0)
      let covered = elements.map(\.property)
      if let property = covered.first(where: { withoutColumn.contains($0) }) {
        details.notes.append("index '\(name)' is left out: '\(property)' has no column")
        continue
      }
      // Core Data's own index of the relationship covers the same column.
      if covered.count == 1, toOne.contains(covered[0]), predicate == nil, elements[0].isAscending {
        continue
      }
      if name == CoreDataLayout.swiftDataIndexPrefix + covered.joined(), predicate == nil,
        elements.allSatisfy(\.isAscending)
      {
        entity.indices.append(covered)
      } else {
        entity.fetchIndexes.append(
          Schema.FetchIndex(name: name, elements: elements, partialPredicate: predicate))
      }
    }
  }

  /// Returns the properties without a column, over which Core Data makes no index, and the to-one relationships, which
  /// have an index of their own.
  private func propertiesWithoutOwnIndex(
    _ properties: [(key: String, value: Value)]
  ) throws(Problem) -> (withoutColumn: Set<String>, toOne: Set<String>) {
    var withoutColumn: Set<String> = []
    var toOne: Set<String> = []
    for (name, value) in properties {
      guard let property = try archive.record(value) else { continue }
      let isRelationship = property.className == "NSRelationshipDescription"
      let maximum = try archive.integer(property["NSMaxCount"])
      let isTransient = try flag("NSIsTransient", Flag.transient, of: property)
      if isTransient || isRelationship && maximum != 1 {
        withoutColumn.insert(name)
      } else if isRelationship {
        toOne.insert(name)
      }
    }
    return (withoutColumn, toOne)
  }

  /// Returns the elements of a fetch index; `nil`, with a note, where one of them is not a property.
  private func elements(
    of index: Record, named name: String, over properties: Set<String>,
    _ details: inout CoreDataModel.EntityDetails
  ) throws(Problem) -> [Schema.FetchIndex.Element]? {
    var elements: [Schema.FetchIndex.Element] = []
    var (isBinary, isOfProperties) = (true, true)
    for value in try archive.elements(index["NSIndexElements"]) {
      guard let element = try archive.record(value) else { continue }
      if try archive.integer(element["NSFetchIndexElementType"]) ?? 0 != 0 { isBinary = false }
      if let property = try archive.text(element["NSPropertyName"]), properties.contains(property) {
        elements.append(
          Schema.FetchIndex.Element(
            property, isAscending: try archive.boolean(element["NSAscending"]) ?? true))
      } else {
        isOfProperties = false
      }
    }
    guard isBinary, isOfProperties else {
      details.notes.append(
        "index '\(name)' is left out: it is \(isBinary ? "over an expression" : "spatial")")
      return nil
    }
    return elements
  }

  // MARK: Properties

  private func relationship(
    _ name: String, _ record: Record
  ) throws(Problem) -> Schema.Relationship {
    let maximum = try archive.integer(record["NSMaxCount"]) ?? 0
    let minimum = max(0, try archive.integer(record["NSMinCount"]) ?? 0)
    let isToOne = maximum == 1
    let rule: Schema.Relationship.DeleteRule =
      switch try archive.integer(record["NSDeleteRule"]) {
      case 0: .noAction
      case 2: .cascade
      case 3: .deny
      default: .nullify
      }
    let isOptional = try isOptional(record)
    let isOrdered = try flag("NSIsOrdered", Flag.ordered, of: record)
    var destination = try archive.text(record["_NSDestinationEntityName"])
    if destination == nil, let entity = try archive.record(record["NSDestinationEntity"]) {
      destination = try archive.text(entity["NSEntityName"])
    }
    var inverse = try archive.text(record["_NSInverseRelationshipName"])
    if inverse == nil, let other = try archive.record(record["NSInverseRelationship"]) {
      inverse = try archive.text(other["NSPropertyName"])
    }
    return Schema.Relationship(
      name: name, originalName: try archive.text(record["NSRenamingIdentifier"]),
      destination: destination ?? "", inverseName: inverse, deleteRule: rule,
      minimumModelCount: Int(clamping: minimum),
      maximumModelCount: Int(clamping: max(0, maximum)),
      isOptional: isOptional || (!isToOne && minimum == 0),
      isToOneRelationship: isToOne, options: !isToOne && isOrdered ? [.ordered] : [],
      hashModifier: try archive.text(record["NSVersionHashModifier"]))
  }

  private func attribute(
    _ name: String, _ record: Record, _ details: inout CoreDataModel.EntityDetails
  ) throws(Problem) -> Schema.Attribute {
    let number = try archive.integer(record["NSAttributeType"]) ?? 0
    var options: [Schema.Attribute.Option] = []
    let isTransient = try flag("NSIsTransient", Flag.transient, of: record)
    if isTransient { options.append(.ephemeral) }
    if number == 1800 {
      options.append(
        .transformable(by: try archive.text(record["NSValueTransformerName"]) ?? ""))
    }
    if record.className == "NSDerivedAttributeDescription" {
      let expression = try expressionText(record["NSDerivationExpression"], depth: 0)
      options.append(.derived(expression ?? ""))
      if try archive.record(record["NSFilteringPredicate"]) != nil {
        details.notes.append(
          "'\(name)' is derived from a filtered relationship; the filter is not imported")
      }
    }
    let storage = try archive.integer(record["NSFlagsKey"]) ?? 0
    if storage & 0x04 != 0 { options.append(.externalStorage) }
    if storage & 0x10 != 0 { options.append(.preserveValueOnDeletion) }
    let type = Self.type(number)
    if type == nil, !isTransient {
      details.notes.append("'\(name)' has the unknown attribute type \(number); imported as Data")
    }
    return Schema.Attribute(
      name: name, originalName: try archive.text(record["NSRenamingIdentifier"]),
      type: type ?? .data, isOptional: try isOptional(record), options: options,
      defaultValue: try defaultValue(record["NSDefaultValue"]),
      hashModifier: try archive.text(record["NSVersionHashModifier"]))
  }

  /// Returns one attribute for each column (section 3.4). An enum with a raw value is one attribute of the raw value's
  /// type.
  private func composite(
    _ name: String, _ record: Record, _ details: inout CoreDataModel.EntityDetails
  ) throws(Problem) -> [Schema.Attribute] {
    let originalName = try archive.text(record["NSRenamingIdentifier"]) ?? name
    var isEnumeration = false
    for (key, value) in try archive.entries(record["NSUserInfo"]) where key == "EnumType" {
      isEnumeration = try archive.boolean(value) ?? true
    }
    let isOptional = try isOptional(record)
    var attributes: [Schema.Attribute] = []
    for value in try archive.elements(record["NSCompositeElements"]) {
      guard let element = try archive.record(value),
        let field = try archive.text(element["NSPropertyName"])
      else { continue }
      guard element.className != "NSCompositeAttributeDescription" else {
        details.notes.append("'\(name).\(field)' is a composite inside another: left out")
        continue
      }
      var attribute = try attribute(field, element, &details)
      attribute.originalName = "\(originalName).\(attribute.originalName)"
      attribute.name = "\(name).\(field)"
      attribute.declaration.isEnumeration = isEnumeration
      attribute.declaration.isRequiredComposite = !isOptional
      attribute.declaration.isRequiredField = !attribute.isOptional
      // The column is NULL in a model whose value is `nil` or another case.
      attribute.isOptional = true
      attributes.append(attribute)
    }
    if isEnumeration, attributes.map(\.name) == ["\(name).\(name)"] {
      attributes[0].name = name
      attributes[0].originalName = originalName
      attributes[0].isOptional = isOptional
      attributes[0].declaration = Schema.Attribute.Declaration()
      attributes[0].declaration.isEnumeration = true
    }
    return attributes
  }

  /// Bits of the field `_P`, for which older frameworks have a field each.
  private enum Flag {
    static let optional: Int64 = 0x2
    static let transient: Int64 = 0x8
    static let ordered: Int64 = 0x400
  }

  private func flag(_ key: String, _ bit: Int64, of record: Record) throws(Problem) -> Bool {
    if let isSet = try archive.boolean(record[key]) { return isSet }
    let bits = try archive.integer(record["_P"]) ?? 0
    return bits & bit != 0
  }

  private func isOptional(_ record: Record) throws(Problem) -> Bool {
    try flag("NSIsOptional", Flag.optional, of: record)
  }

  /// `NSAttributeType` (section 3.1); `nil` for the undefined type, which is never stored.
  private static func type(_ number: Int64) -> Schema.AttributeType? {
    switch number {
    case 100: .int16
    case 200: .int32
    case 300, 2000: .int64
    case 400: .decimal
    case 500: .double
    case 600: .float
    case 700: .string
    case 800: .bool
    case 900: .date
    case 1000, 1800: .data
    case 1100: .uuid
    case 1200: .url
    default: nil
    }
  }

  private func defaultValue(_ value: Value) throws(Problem) -> AttributeValue? {
    switch try archive.resolve(value) {
    case .boolean(let boolean): return .integer(boolean ? 1 : 0)
    case .integer(let integer): return .integer(integer)
    case .unsigned(let integer): return .integer(Int64(bitPattern: integer))
    case .real(let real): return .real(real)
    case .date(let date): return .real(date)
    case .text(let text): return .text(text)
    case .data(let data): return .blob(data)
    case .record(let record):
      switch record.className {
      case "NSDate":
        if case .real(let seconds) = try archive.resolve(record["NS.time"]) {
          return .real(seconds)
        }
        return nil
      case "NSUUID":
        if case .data(let bytes) = try archive.resolve(record["NS.uuidbytes"]) {
          return .blob(bytes)
        }
        return nil
      case "NSURL":
        return try archive.text(record["NS.relative"]).map { .text($0) }
      case "NSDecimalNumber", "NSDecimalNumberPlaceholder":
        return try decimal(record)
      case "NSString", "NSMutableString":
        return try archive.text(value).map { .text($0) }
      case "NSData", "NSMutableData":
        if case .data(let bytes) = try archive.resolve(record["NS.data"]) { return .blob(bytes) }
        return nil
      default: return nil
      }
    default: return nil
    }
  }

  /// An `NSDecimal`: a mantissa of `NS.length` 16-bit units, and a power of ten.
  private func decimal(_ record: Record) throws(Problem) -> AttributeValue? {
    guard case .data(let mantissa) = try archive.resolve(record["NS.mantissa"]),
      let length = try archive.integer(record["NS.length"]),
      let exponent = try archive.integer(record["NS.exponent"]), (-128...127).contains(exponent)
    else { return nil }
    let isLittleEndian = try archive.integer(record["NS.mantissa.bo"]) ?? 1 == 1
    var value = 0.0
    for unit in 0..<max(0, min(Int(clamping: length), mantissa.count / 2)) {
      let (low, high) = isLittleEndian ? (2 * unit, 2 * unit + 1) : (2 * unit + 1, 2 * unit)
      value += Double(Int(mantissa[low]) | Int(mantissa[high]) << 8) * pow(65536, Double(unit))
    }
    // Dividing by a power of ten is exact; multiplying by its inverse is not.
    value = exponent < 0 ? value / pow(10, Double(-exponent)) : value * pow(10, Double(exponent))
    if try archive.boolean(record["NS.negative"]) ?? false { value = -value }
    return value.rounded() == value && abs(value) < 1e15 ? .integer(Int64(value)) : .real(value)
  }
}
