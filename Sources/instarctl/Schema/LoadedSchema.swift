import InstarSchema
import InstarSource
import InstarWire

/// The schema of a store, a plugin's version or an exported document, as `SchemaReader` read it.
struct LoadedSchema: CommandOutput {
  enum Kind: String, Encodable {
    case store, plugin, document
  }

  var kind: Kind
  /// The file.
  var path: String
  /// `nil` for a store that declares none.
  @NullableValue var version: Schema.Version?
  var plan: String?
  /// The name of the `VersionedSchema`.
  var name: String?
  var schema: Schema
  var fingerprint: String
  /// Where a store's schema was found.
  var origin: SchemaOrigin?
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
    name = document.name
    schema = document.schema
    fingerprint = document.fingerprint
    computedDefaults = document.computedDefaults
  }

  /// "'a.store'", "1.0.0 of 'Notes.so'".
  var title: String {
    let file = "'\(path)'"
    return kind == .store ? file : version.map { "\($0) of \(file)" } ?? file
  }

  /// One side of a comparison.
  var side: SchemaComparison.Side {
    SchemaComparison.Side(
      schema, typeName: name,
      computedDefaults: kind == .store ? nil : Set(computedDefaults))
  }
}
