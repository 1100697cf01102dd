internal import InstarChange
internal import InstarSchema

/// An attribute of the first version that the plan removes.
struct EndingAttribute {
  let entity: String
  let attribute: String
  /// The entities whose rows lose the values; `nil` where all rows do.
  let losers: [String]?
  /// The enum that continues it, whose cases come along; `nil` where nothing does.
  let retyped: SchemaDifference.RetypedEnum?

  var path: String { "\(entity).\(attribute)" }
}

extension MigrationPath {
  /// Returns `endingAttributes`.
  func attributesThatEnd() -> [EndingAttribute] {
    attributePaths.compactMap { path in
      guard !path.removingEntities.isEmpty, let name = path.origin.property else { return nil }
      // What nothing keeps is gone also in the rows that lost it before.
      let losers = path.removingEntities + (path.isKept ? [] : path.losingEntities)
      let abstract = Set(first.entities.lazy.filter(\.isAbstract).map(\.name))
      let owners = first.family(of: path.origin.entity).filter { !abstract.contains($0) }
      let isWhole = owners.allSatisfy(losers.contains)
      let retyped = retypedEnum(of: path)
      // The names of all cases are the new text.
      if let retyped, !retyped.becomesCases { return nil }
      return EndingAttribute(
        entity: path.origin.entity, attribute: name,
        losers: isWhole ? nil : owners.filter(losers.contains).sorted(),
        retyped: retyped)
    }
  }

  /// Returns the enum that continues a property that ends, if the last version still has its values.
  private func retypedEnum(of path: PropertyPath) -> SchemaDifference.RetypedEnum? {
    let position = path.start + path.names.count - 1
    guard let names = path.names.last, differences.indices.contains(position) else { return nil }
    let shapes = schemaStages[position].to.valueShapes
    for mapping in differences[position].entities {
      let retyped = differences[position].retypedEnums(mapping, reading: shapes).first { retyped in
        retyped.oldAttributes.contains { attribute in
          names.contains { $0 == (mapping.old?.name ?? "", attribute.name) }
        }
      }
      guard let retyped else { continue }
      let isKept = retyped.newAttributes.contains { attribute in
        let next = followed(
          attribute, of: mapping.new.name, since: position + 1, [], \.attributes)
        return next.isKept || retypedEnum(of: next) != nil
      }
      return isKept ? retyped : nil
    }
    return nil
  }
}
