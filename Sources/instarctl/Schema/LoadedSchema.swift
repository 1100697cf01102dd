import InstarSchema
import InstarSource
import InstarWire

/// The schema of a store, a plugin's version or an exported document, as `SchemaReader` read it.
struct LoadedSchema {
  enum Kind: String, Encodable {
    case store, plugin, document
  }

  var kind: Kind
  /// The file.
  var path: String
  /// `nil` for a store that declares none.
  var version: Schema.Version?
  var plan: String?
  /// The name of the `VersionedSchema`.
  var typeName: String?
  var schema: Schema
  var fingerprint: String
  /// Where a store's schema was found.
  var origin: SchemaReport.Origin?
  /// Attributes with a default that is computed for each row: "Note.uid".
  var computedDefaults: [String] = []
  /// What the schema cannot express.
  var notes: [String] = []

  init(_ report: SchemaReport) {
    kind = .store
    path = report.store
    version = report.version
    schema = report.schema
    fingerprint = report.fingerprint
    origin = report.origin
    notes = report.notes
  }

  init(_ document: SchemaDocument, kind: Kind, path: String) {
    self.kind = kind
    self.path = path
    version = document.schema.version
    plan = document.plan
    typeName = document.name
    schema = document.schema
    fingerprint = document.fingerprint
    computedDefaults = document.computedDefaults
  }

  /// "'a.store'", "1.0.0 of 'Notes.so'".
  var title: String {
    let name = "'\(path)'"
    return kind == .store
      ? name : [version?.description, name].compactMap { $0 }.joined(separator: " of ")
  }

  /// One side of a comparison.
  var side: SchemaComparison.Side {
    SchemaComparison.Side(
      schema, typeName: typeName,
      computedDefaults: kind == .store ? nil : Set(computedDefaults))
  }
}

extension LoadedSchema: Encodable {
  private enum CodingKeys: String, CodingKey {
    case kind, path, version, plan, name, schema, fingerprint, origin, computedDefaults, notes
  }

  /// `version` is null for a store that declares none.
  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(kind, forKey: .kind)
    try container.encode(path, forKey: .path)
    try container.encode(version, forKey: .version)
    try container.encodeIfPresent(plan, forKey: .plan)
    try container.encodeIfPresent(typeName, forKey: .name)
    try container.encode(schema, forKey: .schema)
    try container.encode(fingerprint, forKey: .fingerprint)
    try container.encodeIfPresent(origin, forKey: .origin)
    try container.encode(computedDefaults, forKey: .computedDefaults)
    try container.encode(notes, forKey: .notes)
  }
}
