extension SchemaDifference {
  /// A property whose stored values stay as they are, and are read by a type that may refuse some of them.
  package struct ReadingChange: Sendable, Hashable {
    /// The entity that declares the property, by its name in the new version.
    package var entity: String
    /// Its name in the new version. A composite property is one, with all of its fields.
    package let property: String
    /// What read the values before: "'open' | 'closed'", or "string".
    package var before: String
    package let after: ValueShape

    /// "reads the values of Note.kind as 'open' | 'done' instead of 'open' | 'closed'"
    package var sentence: String {
      "reads the values of \(entity).\(property) as \(after.unwrapped.text)"
        + (before == after.unwrapped.text
          ? ", with a different Swift type" : " instead of \(before)")
    }
  }

  /// Returns the properties whose values another type reads.
  ///
  /// - Parameters:
  ///   - before: The shapes of the old version, by "Entity.property".
  ///   - after: Those of the new version.
  package func readingChanges(
    from before: [String: ValueShape], to after: [String: ValueShape]
  ) -> [ReadingChange] {
    if after.isEmpty || before == after { return [] }
    return properties { entity, mapping in
      guard let new = after["\(entity.name).\(mapping.new.wholeName)"] else { return nil }
      let sources = owners(of: mapping, in: entity).map { before["\($0).\(mapping.old.wholeName)"] }
      // A row without a value is checked with the column.
      let isRead = sources.allSatisfy { old in
        old.map { new.unwrapped.reads($0.unwrapped) } == true
      }
      guard !isRead else { return nil }
      return ReadingChange(
        entity: entity.name, property: mapping.new.wholeName,
        before: sources.lazy.compactMap { $0?.unwrapped.text }.first ?? mapping.old.type.swiftName,
        after: new)
    }
  }

  /// Follows changes of an earlier stage to the names of the new version. Values that are converted or dropped need
  /// nobody to read them as they were.
  package func following(_ earlier: [ReadingChange], to after: [String: ValueShape])
    -> [ReadingChange]
  {
    if earlier.isEmpty { return [] }
    return properties { entity, mapping in
      let owners = owners(of: mapping, in: entity)
      guard let new = after["\(entity.name).\(mapping.new.wholeName)"],
        let change = earlier.first(where: {
          $0.property == mapping.old.wholeName && owners.contains($0.entity)
        })
      else { return nil }
      return ReadingChange(
        entity: entity.name, property: mapping.new.wholeName, before: change.before, after: new)
    }
  }

  /// The properties whose stored values stay, each once.
  private func properties(
    _ change: (Schema.Entity, (old: Schema.Attribute, new: Schema.Attribute)) -> ReadingChange?
  ) -> [ReadingChange] {
    entities.flatMap { mapping in
      var known: Set<String> = []
      return mapping.attributes.compactMap { attribute -> ReadingChange? in
        guard let old = attribute.old, old.type.isStoredLike(attribute.new.type),
          !attribute.new.isEphemeral,
          let change = change(mapping.new, (old, attribute.new)),
          known.insert(change.property).inserted
        else { return nil }
        return change
      }
    }
  }

  /// The entities of the old version that declare the source of an attribute.
  private func owners(
    of mapping: (old: Schema.Attribute, new: Schema.Attribute), in entity: Schema.Entity
  ) -> [String] {
    let origins = originNames(of: entity).compactMap { old.entity(named: $0) }
    let family = origins.flatMap { Self.family(of: $0, in: old) }
    return Set(family.filter { $0.declares(mapping.old.name) }.map(\.name)).sorted()
  }
}

extension Schema.Attribute {
  /// The name of the whole property, where this is one field of a composite.
  fileprivate var wholeName: String {
    name.firstIndex(of: ".").map { String(name[..<$0]) } ?? name
  }
}
