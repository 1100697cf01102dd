extension MigrationStage {
  /// The same stage, whose closures call `beforeWrite` before each row that they insert, change or delete. An error
  /// that it throws fails that write.
  package func watchingWrites(_ beforeWrite: @escaping @Sendable () throws -> Void)
    -> MigrationStage
  {
    let work: StageWork
    switch self.work {
    case .custom(let willMigrate, let didMigrate):
      typealias Closure = @Sendable (ModelContext) throws -> Void
      func watching(_ closure: Closure?) -> Closure? {
        guard let closure else { return nil }
        return { context in
          context.beforeWrite = beforeWrite
          try closure(context)
        }
      }
      work = .custom(willMigrate: watching(willMigrate), didMigrate: watching(didMigrate))
    case .bridge(let migrate):
      work = .bridge { old, new in
        new.beforeWrite = beforeWrite
        try migrate(old, new)
      }
    case .lightweight, .sql, .transform: return self
    }
    return .extended(
      ExtendedStage(fromVersion: fromVersion, toVersion: toVersion, label: label, work: work))
  }
}
