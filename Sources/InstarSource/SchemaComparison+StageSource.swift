import InstarSchema

extension SchemaComparison {
  /// The stage between the two versions as Swift source, to paste between the brackets of a plan's `stages`.
  ///
  /// An editor placeholder, such as `<#String#>`, marks a value that only the author knows. It does not compile.
  public var stageSource: String {
    let versions = "fromVersion: \(old.typeName).self, toVersion: \(new.typeName).self"
    let cures = changes.compactMap(cureOfEmptyColumn).map {
      "// Before you use this stage: \($0).\n"
    }
    .joined()
    guard stage == .custom else {
      return "\(cures).lightweight(\(versions))"
    }
    let emptyColumns = Set(
      changes.filter { cureOfEmptyColumn($0) != nil }.map { "\($0.entity).\($0.property ?? "")" })
    var before: [String] = []
    var after: [String] = []
    let difference = SchemaDifference(from: old.schema, to: new.schema)
    for mapping in difference.entities where mapping.old != nil {
      let entity = mapping.new.name
      for attribute in mapping.attributes {
        guard !emptyColumns.contains("\(entity).\(attribute.new.name)"),
          let lines = steps(for: attribute, of: entity)
        else { continue }
        before += lines.before
        after += lines.after
      }
      for relationship in mapping.relationships {
        guard !emptyColumns.contains("\(entity).\(relationship.new.name)"),
          let lines = steps(for: relationship, of: entity)
        else { continue }
        before += lines.before
        after += lines.after
      }
    }
    return cures + """
      .custom(
        \(versions),
        willMigrate: \(closure(before)),
        didMigrate: \(closure(after)))
      """
  }

  private struct Steps {
    var before: [String] = []
    var after: [String] = []
  }

  private func steps(
    for mapping: SchemaDifference.PropertyMapping<Schema.Attribute>, of entity: String
  ) -> Steps? {
    let attribute = mapping.new
    let type = value(of: attribute)
    let name = member(attribute.name)
    guard let before = mapping.old else {
      guard !attribute.isOptional, attribute.storedDefault == nil else { return nil }
      return addition(of: attribute.name, "\(name) = <#\(type)#>", to: entity)
    }
    if !before.type.isStoredLike(attribute.type) {
      return Steps(
        after: [
          "// \(entity).\(attribute.name) changes from \(before.type.swiftName) to \(attribute.type.swiftName): its column is recreated without values.",
          "// To keep the values, insert a version between the two with both properties: the old one renamed by",
          "// @Attribute(originalName: \"\(before.name)\"), and the new one. Convert the values in its stage.",
        ]
          + loop(
            over: "\(new.typeName).\(entity)", nil,
            ["\(variable(entity)).\(name) = <#\(type)#>"]))
    }
    guard before.isOptional, !attribute.isOptional, attribute.storedDefault == nil else {
      return nil
    }
    return requirement(of: attribute.name, member(before.name), "<#\(type)#>", in: entity)
  }

  private func steps(
    for mapping: SchemaDifference.PropertyMapping<Schema.Relationship>, of entity: String
  ) -> Steps? {
    let relationship = mapping.new
    let name = SwiftName.declared(relationship.name)
    let value =
      relationship.isToOneRelationship
      ? "<#\(relationship.destination)#>" : "<#[\(relationship.destination)]#>"
    let isRequired = relationship.isToOneRelationship && !relationship.isOptional
    guard let before = mapping.old else {
      guard isRequired else { return nil }
      return addition(of: relationship.name, "\(name) = \(value)", to: entity)
    }
    if before.destination != relationship.destination
      || before.isToOneRelationship != relationship.isToOneRelationship
    {
      return Steps(
        after: loop(
          over: "\(new.typeName).\(entity)",
          "\(entity).\(relationship.name) refers to other models now: set its links again",
          ["\(variable(entity)).\(name) = \(value)"]))
    }
    guard isRequired, before.isOptional else { return nil }
    return requirement(of: relationship.name, SwiftName.declared(before.name), value, in: entity)
  }

  private func addition(of property: String, _ assignment: String, to entity: String) -> Steps {
    Steps(
      after: loop(
        over: "\(new.typeName).\(entity)",
        "\(entity).\(property) is new and required, and existing rows have no value for it",
        ["\(variable(entity)).\(assignment)"]))
  }

  private func requirement(
    of property: String, _ oldName: String, _ value: String, in entity: String
  ) -> Steps {
    let path = "\(variable(entity)).\(oldName)"
    return Steps(
      before: loop(
        over: "\(old.typeName).\(entity)",
        "\(entity).\(property) becomes required, and rows without a value need one",
        ["\(path) = \(value)"], where: "\(path) == nil"))
  }

  /// The Swift type of the value to write. A composite is written as a whole, whichever field changed.
  private func value(of attribute: Schema.Attribute) -> String {
    attribute.name.contains(".") ? "value" : SwiftType.name(of: attribute.type)
  }

  private func member(_ name: String) -> String {
    SwiftName.declared(String(name.prefix { $0 != "." }))
  }

  private func variable(_ entity: String) -> String {
    SwiftName.declared(SwiftName.property(entity))
  }

  private func loop(
    over type: String, _ comment: String?, _ body: [String], where condition: String? = nil
  ) -> [String] {
    let entity = type.split(separator: ".").last.map(String.init) ?? type
    let variable = SwiftName.declared(SwiftName.property(entity))
    let statements =
      condition.map { ["if \($0) {"] + body.map { "  \($0)" } + ["}"] } ?? body
    // Not a fetch, which has all rows in memory at once.
    return (comment.map { ["// \($0)"] } ?? [])
      + ["try context.enumerate(FetchDescriptor<\(type)>()) { \(variable) in"]
      + statements.map { "  \($0)" } + ["}"]
  }

  private func closure(_ lines: [String]) -> String {
    guard !lines.isEmpty else { return "nil" }
    return "{ context in\n" + lines.map { "    \($0)" }.joined(separator: "\n") + "\n  }"
  }
}
