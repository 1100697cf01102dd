extension Schema {
  /// Two arrays of models that reference each other's entity and have no inverse.
  ///
  /// SwiftData infers no inverse between arrays. Each array keeps links of its own, in a column of the destination's
  /// rows, so that a model can be in one such array only. Nearly always one relationship was meant.
  package struct SeparateArrays: Hashable, Sendable {
    /// Its path comes first in the alphabet.
    fileprivate let first: Member
    fileprivate let second: Member

    fileprivate struct Member: Hashable, Sendable {
      var entity: String
      var name: String
      var path: String { "\(entity).\(name)" }
    }

    /// What they are, as a sentence without its beginning.
    package var sentence: String {
      "\(first.path) and \(second.path) are arrays without inverse, so each has links of its own; "
        + "a \(second.entity) can be in the \(first.name) of one \(first.entity) only"
    }

    /// What makes them one relationship.
    ///
    /// - Parameter version: The last version that has them.
    package func correction(after version: Version) -> String {
      "write @Relationship(inverse: \\\(second.path)) before \(first.path) in a new version, which gets the links of "
        + "both; do not change \(version), because its stores would no longer match it"
    }
  }

  /// The arrays of models without inverse where exactly one could be the inverse of the other. `.withoutInverse` says
  /// that none is wanted.
  package var separateArrays: [SeparateArrays] {
    entities.flatMap { entity in
      entity.relationships.filter(\.isUnpairedArray).compactMap { relationship in
        let candidates = unpairedArrays(of: relationship.destination, referencing: entity.name)
        let rivals = unpairedArrays(of: entity.name, referencing: relationship.destination)
        let isSelf = relationship.destination == entity.name
        let others = candidates.filter { !isSelf || $0 != relationship.name }
        guard others.count == 1, rivals.count == (isSelf ? 2 : 1) else { return nil }
        let first = SeparateArrays.Member(entity: entity.name, name: relationship.name)
        let second = SeparateArrays.Member(entity: relationship.destination, name: others[0])
        return first.path < second.path ? SeparateArrays(first: first, second: second) : nil
      }
    }
  }

  private func unpairedArrays(of name: String, referencing destination: String) -> [String] {
    entity(named: name)?.relationships
      .filter { $0.isUnpairedArray && $0.destination == destination }.map(\.name) ?? []
  }
}

extension Schema.Relationship {
  fileprivate var isUnpairedArray: Bool {
    !isToOneRelationship && inverseName == nil && !options.contains(.withoutInverse)
  }
}

extension [Schema] {
  /// The separate arrays of the versions of a plan, oldest first: a note on each pair, and what corrects it; `nil` if
  /// the last version no longer has it.
  package var separateArrayNotes: [(note: String, correction: String?)] {
    var pairs: [Schema.SeparateArrays] = []
    for pair in flatMap(\.separateArrays) where !pairs.contains(pair) { pairs.append(pair) }
    return pairs.map { pair in
      let having = filter { $0.separateArrays.contains(pair) }.map(\.version)
      let list = having.map(\.description).joined(separator: ", ")
      let isLast = having.last == last?.version
      return (
        "in \(list), \(pair.sentence)",
        isLast ? having.last.map { pair.correction(after: $0) } : nil
      )
    }
  }
}
