internal import GRDB
public import InstarSchema

extension StoreIntrospection {
  /// Probes the store at a path and reads its schema.
  ///
  /// - Throws: As `StoreProbe.read`. The store is unchanged in any case.
  public static func read(
    _ path: String
  ) throws(InstarError) -> (probe: StoreProbe, introspection: StoreIntrospection) {
    var introspect: (() -> StoreIntrospection)?
    let file = try StoreFile.probe(path)
    let probe = try StoreProbe.read(path, file, rows: .none, busyTimeout: 1) { db, probe in
      introspect = try probe.contents.introspect(db, path: probe.file.path)
    }
    guard let introspect else {
      throw InstarError(
        .internalError, "cannot read the schema of '\(path)'", cause: "nothing was read")
    }
    return (probe, introspect())
  }
}
