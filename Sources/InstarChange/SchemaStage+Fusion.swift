package import InstarSchema
internal import InstarWire

// Lightweight stages that are made as one.

extension SchemaStage {
  /// Joins lightweight stages that follow each other, where one change of schema from the first version to the last
  /// makes exactly their changes. A table that several of them would rewrite is then rewritten once.
  ///
  /// Stages stay apart where the versions in between matter: where a property changes in two stages, moves to another
  /// entity or changes its type, where an entity joins or leaves a hierarchy, and where rows may need code.
  ///
  /// - Parameter stages: Each starts at the version at which the one before ends.
  package static func fused(_ stages: [SchemaStage]) -> [SchemaStage] {
    var fused: [SchemaStage] = []
    for stage in stages {
      if let last = fused.last, let both = last.fused(with: stage) {
        fused[fused.count - 1] = both
      } else {
        fused.append(stage)
      }
    }
    return fused
  }

  /// What plans and reports say of stages that are made as one; `nil` for a single stage.
  package var fusionNote: String? {
    guard parts.count > 1 else { return nil }
    let versions = ([from.schema.version] + parts.map(\.to)).map(\.description)
    return
      "one change of schema makes the lightweight stages \(versions.joined(separator: " → "))"
  }

  private func fused(with next: SchemaStage) -> SchemaStage? {
    guard kind == .lightweight, next.kind == .lightweight else { return nil }
    let (first, second) = (difference, next.difference)
    guard first.isIndependent(of: second) else { return nil }
    let fused = SchemaStage(
      from: from, to: next.to, kind: .lightweight, columnOrder: columnOrder,
      parts: parts + next.parts)
    let both = fused.difference
    guard both.changes.count == first.changes.count + second.changes.count,
      Set(both.changes) == Set(first.changes + second.changes)
    else { return nil }
    let reasons = reasonsForCode + next.reasonsForCode + fused.reasonsForCode
    return reasons.isEmpty && !fused.needsTypes ? fused : nil
  }
}

extension SchemaDifference {
  /// Whether no property changes in this difference and in the next one, in a way that the version in between decides
  /// what its values are.
  fileprivate func isIndependent(of next: SchemaDifference) -> Bool {
    let kinds: Set<ChangeKind> = [.additive, .destructive, .rename, .rule, .index]
    let changes = changes + next.changes
    guard changes.allSatisfy({ kinds.contains($0.kind) && $0.reasonForCustomStage == nil }) else {
      return false
    }
    let earlier = Dictionary(firstOf: entities.map { ($0.new.name, $0) })
    return entities.allSatisfy(\.keepsPropertiesInPlace)
      && next.entities.allSatisfy { mapping in
        guard mapping.keepsPropertiesInPlace else { return false }
        guard let before = mapping.old.flatMap({ earlier[$0.name] }), before.old != nil else {
          // A table without rows.
          return true
        }
        return Self.areIndependent(before.attributes, mapping.attributes)
          && Self.areIndependent(before.relationships, mapping.relationships)
      }
  }

  private static func areIndependent<Property: VersionedProperty>(
    _ first: [PropertyMapping<Property>], _ second: [PropertyMapping<Property>]
  ) -> Bool {
    let earlier = Dictionary(firstOf: first.map { ($0.new.name, $0) })
    return second.allSatisfy { mapping in
      guard let middle = mapping.old else { return true }
      let isKept =
        middle.described == mapping.new.described && middle.hasInitialValue(of: mapping.new)
      guard let before = earlier[middle.name]?.old else { return isKept }
      return isKept || before.described == middle.described
    }
  }
}

extension SchemaDifference.EntityMapping {
  /// Whether each property that has a source has it in the source of its own entity, with the same type.
  fileprivate var keepsPropertiesInPlace: Bool {
    guard keptColumns.isEmpty else { return false }
    let sources =
      attributes.compactMap(\.old?.name) + relationships.compactMap(\.old?.name)
    guard let old else { return sources.isEmpty }
    return sources.allSatisfy(old.declares)
      && attributes.allSatisfy { $0.old == nil || $0.old?.type == $0.new.type }
  }
}

/// A property that can be compared with itself in another version.
private protocol VersionedProperty: SchemaProperty {
  var originalName: String { get set }

  /// Whether rows of the version before get the same value for both, where the property is new.
  func hasInitialValue(of other: Self) -> Bool
}

extension VersionedProperty {
  /// The property without the name that it had in the version before.
  fileprivate var described: Self {
    var property = self
    property.originalName = name
    return property
  }
}

extension Schema.Attribute: VersionedProperty {
  fileprivate func hasInitialValue(of other: Schema.Attribute) -> Bool {
    storedDefault == other.storedDefault
      && declaration.initialValue == other.declaration.initialValue
  }
}

extension Schema.Relationship: VersionedProperty {
  fileprivate func hasInitialValue(of other: Schema.Relationship) -> Bool { true }
}
