extension SchemaDifference {
  /// An `originalName` that is probably a mistake: the old version has neither that name nor the new one. So nothing is
  /// renamed, and the values of what was to be renamed are removed.
  public struct UnknownOriginalName: Sendable, Hashable {
    /// "originalName 'nmae' of Note.title in 2.0.0 names no property of 1.0.0".
    public var sentence: String
    /// What to write.
    public var correction: String
  }

  private typealias Names = (name: String, original: String)

  /// The original names that the old version does not have. If a version before it has the name, the old version may
  /// have the new name already: then nothing is wrong.
  public var unknownOriginalNames: [UnknownOriginalName] {
    entities.flatMap { mapping -> [UnknownOriginalName] in
      let entity = mapping.new
      var found = [
        unknownName(
          (entity.name, entity.originalName), entity.name, "entity",
          among: old.entities.map { ($0.name, $0.originalName) })
      ]
      let related = originNames(of: entity).compactMap { old.entitiesByName[$0] }
        .flatMap { Self.family(of: $0, in: old) }
      // The properties of a new entity have no values to lose.
      guard !related.isEmpty else { return found.compactMap(\.self) }
      let known = related.flatMap(Self.names)
      for names in Self.names(of: entity) where !mapping.keptColumns.values.contains(names.name) {
        let unknown = unknownName(
          names, "\(entity.name).\(names.name)", "property", among: known)
        // A composite has the same names in each of its attributes.
        if !found.contains(unknown) { found.append(unknown) }
      }
      return found.compactMap(\.self)
    }
  }

  private func unknownName(
    _ names: Names, _ path: String, _ kind: String, among known: [Names]
  ) -> UnknownOriginalName? {
    guard names.original != names.name,
      !known.contains(where: { [names.name, names.original].contains($0.name) })
    else { return nil }
    // It may be the name of an earlier version, from which the old version renamed it.
    let meant =
      known.first { $0.original == names.original }?.name
      ?? Suggestion.nearest(to: names.original, among: known.map(\.name))
    return UnknownOriginalName(
      sentence: "originalName '\(names.original)' of \(path) in \(new.version) names no \(kind) of "
        + "\(old.version)",
      correction: meant.map { "write originalName: \"\($0)\"" }
        ?? "write its name in \(old.version); if it is new, remove originalName")
  }

  /// The names of the properties that an entity declares, a composite as one property.
  private static func names(of entity: Schema.Entity) -> [Names] {
    entity.attributes.map { attribute in
      (attribute.compositeName, String(attribute.originalName.prefix { $0 != "." }))
    } + entity.relationships.map { ($0.name, $0.originalName) }
  }
}
