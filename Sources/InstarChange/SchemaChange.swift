package import InstarSchema
package import InstarStore
package import InstarWire

/// The change of schema of one stage.
///
/// A run makes it on the clone, a preview on an empty store, both by the same code: a preview shows what a run
/// executes.
package struct SchemaChange {
  let stage: SchemaStage
  package var difference: SchemaDifference { stage.difference }
  private let decodes: DecodingCheck
  private let code: StageCode

  /// - Parameters:
  ///   - decodes: Decides which stored values an attribute of another type takes over.
  ///   - code: The plan's statements and transforms, which only a process with the plan's code has. They change no
  ///     table, column or index.
  package init(
    _ stage: SchemaStage, decodes: @escaping DecodingCheck = { _, _, _ in nil },
    code: StageCode = StageCode()
  ) {
    self.stage = stage
    self.decodes = decodes
    self.code = code
  }

  /// Makes the change, as `begin` and `endLinks` do, without closures between them.
  ///
  /// - Returns: the planned changes, with the statements that were executed.
  package func make(_ session: SQLSession) throws -> [PlannedChange] {
    let values = try carriedValues()
    let steps = try makeSteps(session, values)
    return ChangeStep.plannedChanges(values.classified(difference.changes), steps)
  }

  /// As `make`.
  ///
  /// - Returns: the statements that were executed, in order.
  func makeSteps(_ session: SQLSession) throws -> [ChangeStep] {
    try makeSteps(session, try carriedValues())
  }

  private func makeSteps(
    _ session: SQLSession, _ values: CarriedValues
  ) throws -> [ChangeStep] {
    let (steps, unwritten) = try begin(session, values, after: UnwrittenValues())
    let repairs = try madeRepairs(session)
    _ = try unwritten.finish(session)
    return steps + repairs
  }

  /// Makes the change in one transaction, between the plan's statements before and after it. In the change no trigger
  /// of the app fires; the app's search indexes are rebuilt where their rows change.
  ///
  /// - Parameter earlier: Values that earlier stages left.
  /// - Returns: the values that were neither kept nor converted, with the earlier ones. Hand these to the next change,
  ///   or finish them.
  /// - Throws: the error of a check of rows, `unexpectedStructure` where the store does not end with the new version's
  ///   structure, or the first error of a statement. The store is then in any state, and has to be discarded.
  package func begin(
    _ session: SQLSession, after earlier: UnwrittenValues = UnwrittenValues()
  ) throws -> UnwrittenValues {
    try begin(session, try carriedValues(), after: earlier).unwritten
  }

  private func carriedValues() throws(InstarError) -> CarriedValues {
    CarriedValues(
      stage, difference, computed: try TransformedValues(code.transforms, stage, difference),
      decodes: decodes)
  }

  /// Ends links that one end no longer has. Runs after `didMigrate`, which may read them to choose one. No trigger of
  /// the app fires.
  package func endLinks(_ session: SQLSession) throws {
    _ = try madeRepairs(session)
  }

  private func madeRepairs(_ session: SQLSession) throws -> [ChangeStep] {
    let steps = stage.linkRepairs(difference)
    if steps.isEmpty { return [] }
    try session.withoutTriggers { for step in steps { try session.run(step.sql) } }
    return steps
  }

  private func begin(
    _ session: SQLSession, _ values: CarriedValues, after earlier: UnwrittenValues
  ) throws -> (steps: [ChangeStep], unwritten: UnwrittenValues) {
    session.carryRowKeys(
      stage.entityLayoutPairs(difference).compactMap { change in
        change.new.map { (change.old.key, $0.key) }
      })
    let first = try code.run(\.before, "before", stage.from.layout, session)
    do {
      try earlier.pause(session)
      var (steps, unwritten) = try session.withoutTriggers { try run(session, values) }
      try unwritten.follow(earlier, over: stage, difference, values.computed, session)
      let last = try code.run(\.after, "after", stage.to.layout, session)
      return (first + steps + last, unwritten)
    } catch let error as InstarError {
      throw AppCode.explained(error)
    }
  }

  private func run(
    _ session: SQLSession, _ values: CarriedValues
  ) throws -> ([ChangeStep], UnwrittenValues) {
    let searchIndexes = try SearchIndexRebuild(session)
    let (steps, unwritten) = try values.carry(session, searchIndexes) {
      switch (stage.from.layout, stage.to.layout) {
      case (is CoreDataLayout, is CoreDataLayout):
        try CoreDataChangeExecutor(
          stage: stage, difference: difference, searchIndexes: searchIndexes
        ).run(session)
      case (let old as PlainLayout, let new as PlainLayout):
        try PlainChangeExecutor(
          change: PlainSchemaChange(
            old: old, new: new, difference: difference, carriedValues: values),
          searchIndexes: searchIndexes
        ).run(session)
      default:
        throw InstarError(
          .internalError, stage.what, cause: "the two versions have different formats")
      }
    }
    return (steps + (try searchIndexes.finish()), unwritten)
  }
}

extension SchemaStage {
  /// Whether the change of schema asks the types of the plan's code which stored values they decode.
  package var needsTypes: Bool {
    typesAreNeeded.get {
      var asks = false
      _ = CarriedValues(self, difference) { _, _, _ in
        asks = true
        return nil
      }
      return asks
    }
  }
}
