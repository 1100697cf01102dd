import InstarSchema
import InstarSource
import InstarWire

/// The schema of a store, of a plugin's version or of a document.
struct FoundSchema {
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
  /// "Note.uid": attributes whose default is made anew for each row.
  var computedDefaults: [String] = []
  /// What of the file the schema does not say.
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

extension FoundSchema: Encodable {
  private enum CodingKeys: String, CodingKey {
    case kind, path, version, plan, name, schema, fingerprint, origin, computedDefaults, notes
  }

  /// `version` is there as null where a store declares none.
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
