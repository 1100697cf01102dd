import InstarSchema

/// The `@Model` class of one entity.
struct ModelClassSource {
  /// One stored property of the class.
  struct Property {
    /// In source, with backticks where needed.
    var name: String
    /// With a question mark if it is optional.
    var type: String
    var marker: String?
    /// The expression after `=`.
    var initialValue: String?
    var comment: String?
    /// Whether the class's initializer has a parameter for it.
    var isParameter = true

    /// The default of the parameter.
    var parameterDefault: String? {
      initialValue ?? keyDefault ?? (type.hasSuffix("?") ? "nil" : nil)
    }

    /// The default of a key's parameter, for which the store chooses the next free value.
    var keyDefault: String?
  }

  private let entity: Schema.Entity
  private let scope: SourceScope
  /// The nested types of composites.
  private var types: [[String]] = []
  private(set) var properties: [Property] = []

  init(_ entity: Schema.Entity, in scope: SourceScope) {
    self.entity = entity
    self.scope = scope
    var composites: Set<String> = []
    for attribute in entity.attributes {
      guard let dot = attribute.name.firstIndex(of: ".") else {
        properties.append(property(attribute))
        continue
      }
      let name = String(attribute.name[..<dot])
      if composites.insert(name).inserted { addComposite(name) }
    }
    for relationship in entity.relationships { properties.append(property(relationship)) }
  }

  // MARK: Attributes

  private func property(_ attribute: Schema.Attribute) -> Property {
    let type = scope.type(SwiftType.name(of: attribute.type))
    let value = attribute.storedDefault.flatMap { initialValue($0, of: attribute.type) }
    var arguments = attribute.options.map(argument)
    if !attribute.isUnique, entity.uniquenessConstraints.contains([attribute.name]) {
      arguments.insert(".unique", at: 0)
    }
    if attribute.originalName != attribute.name {
      arguments.append("originalName: \(SwiftLiteral.string(attribute.originalName))")
    }
    if let modifier = attribute.hashModifier {
      arguments.append("hashModifier: \(SwiftLiteral.string(modifier))")
    }
    return Property(
      name: SwiftName.declared(attribute.name), type: attribute.isOptional ? "\(type)?" : type,
      marker: joined(columnMarker(attribute.column), marker("Attribute", arguments)),
      initialValue: value, comment: scope.comments["\(entity.name).\(attribute.name)"],
      isParameter: attribute.column?.generated == nil, keyDefault: keyDefault(of: attribute))
  }

  /// Returns the argument of `@Attribute` for an option.
  private func argument(_ option: Schema.Attribute.Option) -> String {
    guard let argument = option.argument else { return ".\(option.name)" }
    let label = option.name == "transformable" ? "by: " : ""
    return ".\(option.name)(\(label)\(SwiftLiteral.string(argument)))"
  }

  private func joined(_ markers: String?...) -> String? {
    let markers = markers.compactMap { $0 }
    return markers.isEmpty ? nil : markers.joined(separator: " ")
  }

  // MARK: Tables

  private func columnMarker(_ column: Schema.Column?) -> String? {
    guard let column else { return nil }
    var arguments: [String] = []
    func add(_ option: String, _ text: String?) {
      if let text { arguments.append(".\(option)(\(SwiftLiteral.string(text)))") }
    }
    if let names = column.names {
      let names = names.map(SwiftLiteral.string)
      arguments.append(names.count == 1 ? names[0] : ".columns(\(names.joined(separator: ", ")))")
    }
    if column.isAutoincrement {
      arguments.append(".autoincrement")
    } else if column.isPrimaryKey {
      arguments.append(".primaryKey")
    }
    add("type", column.type)
    if let encoding = column.encoding { arguments.append(".encoding(.\(encoding.rawValue))") }
    add("collation", column.collation)
    add("check", column.check)
    add("default", column.defaultValue)
    if let expression = column.generated {
      let stored = column.isStored ? ", stored: true" : ""
      arguments.append(".generated(\(SwiftLiteral.string(expression))\(stored))")
    }
    if let action = column.onDelete { arguments.append(".onDelete(.\(action))") }
    if let action = column.onUpdate { arguments.append(".onUpdate(.\(action))") }
    if let junction = column.junction, let own = junction.own.first,
      let other = junction.other.first
    {
      let names = [junction.table, own, other].map(SwiftLiteral.string)
      arguments.append(".junction(\(names[0]), own: \(names[1]), other: \(names[2]))")
    }
    return marker("Column", arguments)
  }

  /// The store chooses the value of an integer that is the whole key.
  private func keyDefault(of attribute: Schema.Attribute) -> String? {
    guard entity.table?.isWithoutRowID == false, attribute.type.isInteger,
      entity.keyAttributes.map(\.name) == [attribute.name],
      attribute.columnType(isStrict: false).uppercased() == "INTEGER",
      !entity.relationships.contains(where: { $0.column?.isPrimaryKey == true })
    else { return nil }
    return "0"
  }

  /// `@Table` of a class in a plain store.
  private var tableMarker: String? {
    guard let table = entity.table else { return nil }
    var arguments = table.name.map { [SwiftLiteral.string($0)] } ?? []
    if table.isStrict { arguments.append(".strict") }
    if table.isWithoutRowID { arguments.append(".withoutRowID") }
    arguments += table.checks.map { ".check(\(SwiftLiteral.string($0)))" }
    arguments += table.indexes.map { index in
      let terms = index.terms.map(SwiftLiteral.string).joined(separator: ", ")
      return ".index(\(SwiftLiteral.string(index.name)), on: \(terms)"
        + (index.isUnique ? ", unique: true" : "")
        + (index.condition.map { ", where: \(SwiftLiteral.string($0))" } ?? "") + ")"
    }
    return marker("Table", arguments) ?? "@\(scope.macro("Table"))"
  }

  private func marker(_ name: String, _ arguments: [String]) -> String? {
    arguments.isEmpty ? nil : "@\(scope.macro(name))(\(arguments.joined(separator: ", ")))"
  }

  /// Returns the expression of a default; `nil` where the stored value does not have the type.
  private func initialValue(_ value: AttributeValue, of type: Schema.AttributeType) -> String? {
    switch (type, value) {
    case (.bool, .integer(let integer)): return integer != 0 ? "true" : "false"
    case (.int16, .integer(let integer)): return Int16(exactly: integer).map { "\($0)" }
    case (.int32, .integer(let integer)): return Int32(exactly: integer).map { "\($0)" }
    case (.int64, .integer(let integer)): return "\(integer)"
    case (.double, .integer(let integer)), (.float, .integer(let integer)): return "\(integer)"
    case (.double, .real(let real)), (.float, .real(let real)): return SwiftLiteral.real(real)
    case (.decimal, .integer(let integer)): return "\(integer)"
    // A literal would go through a binary fraction.
    case (.decimal, .real(let real)):
      return real.isFinite
        ? "\(scope.type("Decimal"))(string: \(SwiftLiteral.string("\(real)")))!" : nil
    case (.decimal, .text(let text)):
      return "\(scope.type("Decimal"))(string: \(SwiftLiteral.string(text)))!"
    case (.date, .integer(let integer)):
      return "\(scope.type("Date"))(timeIntervalSinceReferenceDate: \(integer))"
    case (.date, .real(let real)):
      // A date with a fraction of a second was not written by a person: it is when the model was compiled.
      return real == real.rounded()
        ? "\(scope.type("Date"))(timeIntervalSinceReferenceDate: \(SwiftLiteral.real(real)))"
        : "\(scope.type("Date")).now"
    case (.string, .text(let text)): return SwiftLiteral.string(text)
    case (.url, .text(let text)):
      return "\(scope.type("URL"))(string: \(SwiftLiteral.string(text)))!"
    // `var id = UUID()` leaves one random value in the model.
    case (.uuid, .blob): return "\(scope.type("UUID"))()"
    case (.data, .blob(let bytes)): return SwiftLiteral.bytes(bytes, type: scope.type("Data"))
    default: return nil
    }
  }

  // MARK: Composites

  private mutating func addComposite(_ name: String) {
    let fields = entity.attributes.filter { $0.name.hasPrefix("\(name).") }.map {
      (name: String($0.name.dropFirst(name.count + 1)), attribute: $0)
    }
    let declaration = fields.first?.attribute.declaration ?? Schema.Attribute.Declaration()
    let typeName = SwiftName.free(SwiftName.type(name), among: scope.typeNames)
    let codable = scope.type("Codable")
    if declaration.isEnumeration {
      types.append(
        ["enum \(SwiftName.declared(typeName)): \(codable) {"]
          + fields.map { "  case \(SwiftName.declared($0.name))" } + ["}"])
    } else {
      types.append(
        ["struct \(SwiftName.declared(typeName)): \(codable), \(scope.type("Hashable")) {"]
          + fields.flatMap { field, attribute in
            let type = scope.type(SwiftType.name(of: attribute.type))
            let comment = scope.comments["\(entity.name).\(attribute.name)"]
            return (comment.map { ["  // \($0)"] } ?? []) + [
              "  var \(SwiftName.declared(field)): \(type)\(attribute.declaration.isRequiredField ? "" : "?")"
            ]
          } + ["}"])
    }
    var arguments: [String] = []
    if let original = fields.first?.attribute.originalName.prefix(while: { $0 != "." }),
      original != name
    {
      arguments.append("originalName: \(SwiftLiteral.string(String(original)))")
    }
    properties.append(
      Property(
        name: SwiftName.declared(name),
        type: SwiftName.declared(typeName) + (declaration.isRequiredComposite ? "" : "?"),
        marker: marker("Attribute", arguments)))
  }

  // MARK: Relationships

  private func property(_ relationship: Schema.Relationship) -> Property {
    let destination = SwiftName.declared(relationship.destination)
    var arguments = relationship.isOrdered ? [".ordered"] : []
    if scope.standsAlone(relationship, of: entity.name) { arguments.append(".withoutInverse") }
    if relationship.isOwnInverse(in: entity.name) { arguments.append(".ownInverse") }
    if relationship.deleteRule != .nullify {
      arguments.append("deleteRule: .\(relationship.deleteRule.rawValue)")
    }
    if relationship.minimumModelCount > 0 {
      arguments.append("minimumModelCount: \(relationship.minimumModelCount)")
    }
    if !relationship.isToOneRelationship, relationship.maximumModelCount > 0 {
      arguments.append("maximumModelCount: \(relationship.maximumModelCount)")
    }
    if relationship.originalName != relationship.name {
      arguments.append("originalName: \(SwiftLiteral.string(relationship.originalName))")
    }
    if let inverse = scope.inverseToName(of: relationship, in: entity.name) {
      arguments.append("inverse: \\\(destination).\(SwiftName.declared(inverse))")
    }
    if let modifier = relationship.hashModifier {
      arguments.append("hashModifier: \(SwiftLiteral.string(modifier))")
    }
    let marker = joined(columnMarker(relationship.column), marker("Relationship", arguments))
    let comment = scope.comments["\(entity.name).\(relationship.name)"]
    if relationship.isToOneRelationship {
      return Property(
        name: SwiftName.declared(relationship.name),
        type: relationship.isOptional ? "\(destination)?" : destination, marker: marker,
        comment: comment)
    }
    return Property(
      name: SwiftName.declared(relationship.name), type: "[\(destination)]", marker: marker,
      initialValue: "[]", comment: comment, isParameter: false)
  }

  // MARK: The class

  /// Returns the lines of the class, without indentation.
  func lines(superclass: (name: String, parameters: [Property])?, hasSubclasses: Bool) -> [String] {
    let name = SwiftName.declared(entity.name)
    let original =
      entity.originalName == entity.name
      ? "" : "(originalName: \(SwiftLiteral.string(entity.originalName)))"
    var lines = [tableMarker, "@\(scope.macro("Model"))\(original)"].compactMap { $0 }
    let inheritance = superclass.map { ": \($0.name)" } ?? ""
    lines.append("\(hasSubclasses ? "" : "final ")class \(name)\(inheritance) {")
    let constraints = [("Unique", groupsToName.map(paths)), ("Index", indexesToName)]
    for (macro, list) in constraints where !list.isEmpty {
      lines += wrapped(
        "  #\(macro)<\(name)>(", list, ")", indent: "  ")
      lines.append("")
    }
    for type in types { lines += type.map { "  \($0)" } + [""] }
    for property in properties { lines += declaration(of: property) }
    if !properties.isEmpty { lines.append("") }
    lines += initializer(inherited: superclass?.parameters)
    return lines + ["}"]
  }

  /// Groups of several properties, and of one property that is not an attribute of this class. Other attributes are
  /// marked `.unique` themselves.
  private var groupsToName: [[String]] {
    entity.uniquenessConstraints.filter { group in
      group.count != 1 || entity.attributesByName[group[0]] == nil
    }
  }

  /// Returns a group as an array of key paths.
  private func paths(_ group: [String]) -> String {
    "[\(group.map { "\\.\(SwiftName.declared($0))" }.joined(separator: ", "))]"
  }

  /// The arguments of `#Index`. Named indexes keep their names.
  private var indexesToName: [String] {
    let named = entity.fetchIndexes.filter(\.canBeNamed)
    guard !named.isEmpty else { return entity.indices.map(paths) }
    return entity.indices.map { ".binary(\(paths($0)))" }
      + named.map { index in
        let condition = index.condition.map { ", where: \(SwiftLiteral.string($0))" } ?? ""
        return
          ".named(\(SwiftLiteral.string(index.name)), \(elements(of: index))\(condition))"
      }
  }

  /// Returns the key paths of a named index, with directions where not all are ascending.
  private func elements(of index: Schema.FetchIndex) -> String {
    if index.elements.allSatisfy(\.isAscending) { return paths(index.elements.map(\.property)) }
    let elements = index.elements.map { element in
      ".\(element.isAscending ? "ascending" : "descending")(\\.\(SwiftName.declared(element.property)))"
    }
    return "[\(elements.joined(separator: ", "))]"
  }

  private func declaration(of property: Property) -> [String] {
    let variable =
      "var \(property.name): \(property.type)" + (property.initialValue.map { " = \($0)" } ?? "")
    var lines =
      property.comment.map { VersionedSchemaSource.wrapped($0, prefix: "  // ", width: 98) } ?? []
    guard let marker = property.marker else { return lines + ["  \(variable)"] }
    if marker.count + variable.count + 3 <= 96 - scope.indent.count {
      lines.append("  \(marker) \(variable)")
    } else {
      lines += ["  \(marker)", "  \(variable)"]
    }
    return lines
  }

  private func initializer(inherited: [Property]?) -> [String] {
    let own = properties.filter(\.isParameter)
    let parameters = (inherited ?? []) + own
    let list = parameters.map { parameter in
      "\(parameter.name): \(parameter.type)"
        + (parameter.parameterDefault.map { " = \($0)" } ?? "")
    }
    let overrides = inherited != nil && own.isEmpty
    var lines = wrapped("  \(overrides ? "override " : "")init(", list, ") {", indent: "  ")
    lines += own.map { "    self.\($0.name) = \($0.name)" }
    if let inherited {
      let arguments = inherited.map { "\($0.name): \($0.name)" }
      lines += wrapped("    super.init(", arguments, ")", indent: "    ")
    }
    if lines.count == 1, own.isEmpty { return ["  init() {}"] }
    return lines + ["  }"]
  }

  /// Returns one line where it fits, else one line for each element.
  private func wrapped(
    _ head: String, _ elements: [String], _ tail: String, indent: String
  ) -> [String] {
    let line = head + elements.joined(separator: ", ") + tail
    if line.count + scope.indent.count <= 100 || elements.isEmpty { return [line] }
    return [head]
      + elements.enumerated().map { index, element in
        "\(indent)  \(element)\(index + 1 < elements.count ? "," : "")"
      } + ["\(indent)\(tail)"]
  }

  /// The parameters that the initializer of a subclass passes to this class.
  var parameters: [Property] { properties.filter(\.isParameter) }
}

extension Schema.FetchIndex {
  /// Whether `#Index` can express the index. It cannot express a predicate of Foundation.
  var canBeNamed: Bool { !elements.isEmpty && partialPredicate == nil }
}
