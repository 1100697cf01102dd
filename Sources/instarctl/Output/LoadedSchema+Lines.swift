import InstarSchema
import InstarSource
import InstarWire

extension LoadedSchema {
  var lines: [ConsoleLine] {
    var head = Table(.left, .left)
    head.add("version", "\(version?.description ?? "none declared")")
    if let plan {
      head.add("plan", "\(plan)\(name.map { " (\($0))" } ?? "")")
    }
    if let origin { head.add("source", "\(origin.words)") }
    head.add("fingerprint", "\(fingerprint)")
    var lines: [ConsoleLine] = ["\(path)"] + head.lines(indent: "  ")
    for entity in schema.entities {
      lines += ["", "  \(entity.heading)"]
      var table = Table(.left, .left, .left)
      for attribute in entity.attributes {
        let isComputed = computedDefaults.contains("\(entity.name).\(attribute.name)")
        table.add(
          "\(attribute.name)", "\(attribute.swiftTypeName)",
          "\(attribute.details(isComputed: isComputed))")
      }
      for relationship in entity.relationships {
        table.add(
          "\(relationship.name)", "\(relationship.typeWords)", "\(relationship.details)")
      }
      lines += table.lines(indent: "    ")
      lines += entity.constraintLines.map { "    \($0)" }
    }
    if !notes.isEmpty { lines.append("") }
    lines += notes.map { "  note: \($0)" }
    return lines
  }
}

extension SchemaOrigin {
  var words: String {
    switch self {
    case .modelCache: "the model in the store"
    case .metadata: "the schema in the store"
    case .tables: "the store's tables"
    }
  }
}

extension Schema.Entity {
  fileprivate var heading: String {
    if let tableName { return "\(name), table \(tableName)" }
    return superentityName.map { "\(name): \($0)" } ?? name
  }

  /// Constraints of several properties, and indexes. A constraint of one property is shown beside it.
  fileprivate var constraintLines: [String] {
    uniquenessConstraints.filter { group in
      group.count > 1 || attributesByName[group.first ?? ""]?.isUnique != true
    }.map { "unique: \($0.joined(separator: ", "))" }
      + indices.map { "index: \($0.joined(separator: ", "))" }
  }
}

extension Schema.Attribute {
  fileprivate func details(isComputed: Bool) -> String {
    var details = options.map { option in
      option.argument.map { "\(option.name)(\($0))" } ?? option.name
    }
    if isComputed {
      details.append("default computed")
    } else if let storedDefault {
      details.append("default \(storedDefault.words)")
    }
    if originalName != name { details.append("was \(originalName)") }
    return (details + (column?.details ?? [])).joined(separator: ", ")
  }
}

extension Schema.Column {
  /// What differs from a column without declarations.
  fileprivate var details: [String] {
    var details: [String] = []
    if let names { details.append("column \(names.joined(separator: ", "))") }
    if let type { details.append("declared \(type)") }
    if let encoding { details.append("written as \(encoding.rawValue)") }
    if isAutoincrement {
      details.append("primary key, autoincrement")
    } else if isPrimaryKey {
      details.append("primary key")
    }
    if let generated { details.append("is \(generated)") }
    if let defaultValue { details.append("default \(defaultValue)") }
    if let onUpdate { details.append("on update \(onUpdate.rawValue.lowercased())") }
    if let junction { details.append("links in \(junction.table)") }
    return details
  }
}

extension Schema.Relationship {
  fileprivate var typeWords: String {
    if isToOneRelationship { return "→ \(destination)\(isOptional ? "?" : "")" }
    return "→ many \(destination)"
  }

  fileprivate var details: String {
    var details: [String] = []
    if let inverseName { details.append("inverse \(inverseName)") }
    if deleteRule != .nullify { details.append("on delete \(deleteRule.rawValue)") }
    if minimumModelCount > 0 { details.append("at least \(minimumModelCount)") }
    if !isToOneRelationship, maximumModelCount > 0 {
      details.append("at most \(maximumModelCount)")
    }
    if originalName != name { details.append("was \(originalName)") }
    return (details + (column?.details ?? [])).joined(separator: ", ")
  }
}
