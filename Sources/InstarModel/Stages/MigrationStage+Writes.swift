extension MigrationStage {
  /// The same stage, whose code calls `beforeWrite` before each row that it inserts, changes or deletes: a closure by a
  /// save or by SQL, a statement, or a transform, which computes a row. An error that it throws fails that write.
  package func watchingWrites(_ beforeWrite: @escaping @Sendable () throws -> Void)
    -> MigrationStage
  {
    MigrationStage(
      ExtendedStage(
        fromVersion: fromVersion, toVersion: toVersion, label: label, work: work,
        beforeWrite: beforeWrite))
  }
}
