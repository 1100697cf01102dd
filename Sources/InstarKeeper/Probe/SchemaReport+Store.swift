internal import InstarSchema
internal import InstarStore
internal import InstarWire

extension SchemaReport {
  /// Reads the schema of a store, as far as the store holds it, without changing the store.
  ///
  /// - Throws: Why the file is not a store, or cannot be read.
  static func read(_ store: String, openPolicy: OpenPolicy) throws(InstarError) -> SchemaReport {
    var introspection: StoreIntrospection?
    let probe = try openPolicy.probe(store) { path throws(InstarError) in
      let read = try StoreIntrospection.read(path)
      introspection = read.introspection
      return read.probe
    }
    guard let found = introspection else {
      throw InstarError(
        .internalError, "cannot read the schema of '\(store)'", cause: "nothing was read")
    }
    var report = SchemaReport(
      store: store, format: probe.identity.format, origin: found.origin,
      version: probe.identity.version, schema: found.schema, structure: probe.identity.structure,
      fingerprint: probe.identity.fingerprint, notes: found.notes)
    report.archivedTypes = found.archivedTypes
    return report
  }
}
