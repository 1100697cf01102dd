internal import GRDB
internal import InstarSchema
internal import InstarStore
internal import InstarWire

extension StoreDDL {
  /// Larger schemas are not sent to a worker.
  private static let limitBytes = 4 << 20

  /// Reads what a worker needs to know of a store for its plan.
  ///
  /// - Throws: Why the store cannot be read.
  static func read(
    _ probe: StoreProbe, openPolicy: OpenPolicy
  ) throws(InstarError) -> StoreDDL {
    let file = try openPolicy.probeFile(probe.file.path)
    return try StoreReader.withReadOnlyStore(file.path) { db in
      let all = try probe.ddl(db, limitBytes: limitBytes)
      let isTooLarge = all.reduce(0) { $0 + $1.utf8.count } >= limitBytes
      return StoreDDL(statements: isTooLarge ? [] : all)
    }
  }
}
