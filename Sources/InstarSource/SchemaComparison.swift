public import InstarSchema

/// The changes from one schema to another, and the stage that they need.
public struct SchemaComparison: Sendable {
  /// One side of a comparison.
  public struct Side: Sendable {
    public var schema: Schema
    /// The name of the `VersionedSchema` in source.
    public var typeName: String
    /// "Note.uid": attributes whose default is computed for each row, such as `UUID()`. `nil` for a store, which keeps
    /// no trace of it.
    public var computedDefaults: Set<String>?

    /// Creates a side. Without a name, it gets a placeholder for the name in the plan's source.
    public init(_ schema: Schema, typeName: String? = nil, computedDefaults: Set<String>? = nil) {
      self.schema = schema
      self.computedDefaults = computedDefaults
      self.typeName = typeName ?? "<#\(VersionName.type("Schema", schema.version))#>"
    }
  }

  /// The kind of a stage between the two.
  public enum Stage: String, Sendable, Codable {
    case lightweight, custom
  }

  public let old: Side
  public let new: Side
  /// The changes to a store.
  public let changes: [SchemaDifference.Change]
  /// The changes to the models alone, which leave a store as it is, and what may be meant as a rename.
  public let notes: [String]
  private let difference: SchemaDifference

  /// Compares two schemas, in the direction of a migration.
  public init(from old: Side, to new: Side) {
    self.old = old
    self.new = new
    difference = SchemaDifference(from: old.schema, to: new.schema)
    changes = difference.changes
    notes = difference.possibleRenames.map(\.correction) + Self.notes(on: difference, old, new)
  }

  /// `custom` where at least one change cannot be derived from the schemas, and code can make it. A plan is checked by
  /// the same rule.
  public var stage: Stage {
    changes.contains { $0.reasonForCustomStage != nil && !difference.addsEmptyColumn($0) }
      ? .custom : .lightweight
  }

  /// Returns what to write where a change needs values that neither a lightweight stage nor `didMigrate` can give;
  /// `nil` for other changes.
  public func cureOfEmptyColumn(_ change: SchemaDifference.Change) -> String? {
    difference.addsEmptyColumn(change) ? difference.cureOfEmptyColumn(change) : nil
  }

  private static func notes(
    on difference: SchemaDifference, _ oldSide: Side, _ newSide: Side
  ) -> [String] {
    var notes: [String] = []
    for mapping in difference.entities {
      guard let old = mapping.old else { continue }
      for group in mapping.new.uniquenessConstraints
      where !old.uniquenessConstraints.contains(group) {
        notes.append(
          "a store with duplicate values of \(mapping.new.name).\(group.joined(separator: ", ")) is refused, unless willMigrate of a custom stage removes the duplicates"
        )
      }
      for attribute in mapping.attributes {
        guard let before = attribute.old else { continue }
        let path = "\(mapping.new.name).\(attribute.new.name)"
        notes += Self.notes(
          on: path, from: before, to: attribute.new,
          wasComputed: oldSide.computedDefaults?.contains("\(old.name).\(before.name)"),
          isComputed: newSide.computedDefaults?.contains(path))
      }
      for relationship in mapping.relationships {
        guard let before = relationship.old else { continue }
        notes += Self.notes(
          on: "\(mapping.new.name).\(relationship.new.name)", from: before, to: relationship.new)
      }
    }
    return notes
  }

  /// - Parameters:
  ///   - wasComputed: Whether the default was computed for each row; `nil` where that is not known.
  ///   - isComputed: Likewise, in the new version.
  private static func notes(
    on path: String, from before: Schema.Attribute, to attribute: Schema.Attribute,
    wasComputed: Bool?, isComputed: Bool?
  ) -> [String] {
    var notes: [String] = []
    let (was, isNow) = (wasComputed ?? isComputed ?? false, isComputed ?? wasComputed ?? false)
    if was != isNow || !isNow && before.storedDefault != attribute.storedDefault {
      let words = (
        was ? Self.computed : words(before.storedDefault),
        isNow ? Self.computed : words(attribute.storedDefault)
      )
      notes.append(
        "the default of \(path) changes from \(words.0) to \(words.1): existing rows keep their values"
      )
    }
    if before.type != attribute.type, before.type.isStoredLike(attribute.type) {
      notes.append(
        "\(path) changes from \(before.type.swiftName) to \(attribute.type.swiftName), which is stored the same way"
      )
    }
    // Uniqueness is noted with the constraints.
    let old = Set(before.options.map(\.name)).union(["unique"])
    let new = Set(attribute.options.map(\.name)).union(["unique"])
    notes += new.subtracting(old).sorted().map { "\(path) gets the option .\($0)" }
    notes += old.subtracting(new).sorted().map { "\(path) loses the option .\($0)" }
    if before.hashModifier != attribute.hashModifier {
      notes.append("the hash modifier of \(path) changes")
    }
    return notes
  }

  private static func notes(
    on path: String, from before: Schema.Relationship, to relationship: Schema.Relationship
  ) -> [String] {
    var notes: [String] = []
    func limits(_ one: Schema.Relationship) -> [Int] {
      [one.minimumModelCount, one.isToOneRelationship ? 1 : one.maximumModelCount]
    }
    if limits(before) != limits(relationship) {
      notes.append("\(path) allows another number of models than before")
    }
    if before.hashModifier != relationship.hashModifier {
      notes.append("the hash modifier of \(path) changes")
    }
    return notes
  }

  private static let computed = "a value computed for each row"

  private static func words(_ value: AttributeValue?) -> String {
    value?.words ?? "none"
  }
}

extension AttributeValue {
  /// The value in a sentence: a number, a quoted text, a UUID, or the size of a longer value.
  public var words: String {
    switch self {
    case .integer(let integer): "\(integer)"
    case .real(let real): "\(real)"
    case .text(let text):
      text.count <= 40 ? SwiftLiteral.string(text) : "a text of \(text.count) characters"
    case .blob(let bytes): String(uuid: bytes) ?? "\(bytes.count) bytes"
    }
  }
}

/// The names of versions in source.
public enum VersionName {
  /// `NotesSchemaV1` of 1.0.0, `NotesSchemaV1_2` of 1.2.0, `NotesSchemaV1_2_3` of 1.2.3.
  public static func type(_ prefix: String, _ version: Schema.Version) -> String {
    var parts = [version.major, version.minor, version.patch]
    while parts.count > 1, parts.last == 0 { parts.removeLast() }
    return "\(prefix)V\(parts.map(String.init).joined(separator: "_"))"
  }
}
