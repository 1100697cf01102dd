package import InstarSchema
package import InstarStore
package import InstarWire

extension SchemaStage {
  /// Makes a lightweight stage on a clone.
  ///
  /// - Parameters:
  ///   - plan: The name of the plan, for errors.
  ///   - number: The place of the stage in its run, such as "1 of 2".
  ///   - earlier: Values that earlier stages lost.
  ///   - meter: Measures the change of schema.
  /// - Returns: The values that were lost so far. Hand them to the next stage, or finish them.
  /// - Throws: `needsCustomStage` where the stage needs code; else the first error of the change of schema. The clone
  ///   is then in any state, and the caller discards it.
  package func makeLightweight(
    plan: String, number: String, after earlier: UnwrittenValues, on connection: StoreConnection,
    meter: WorkMeter? = nil
  ) throws(InstarError) -> UnwrittenValues {
    let change = SchemaChange(self)
    try StageCheck.check(self, plan: plan)
    try step("the check", number) {
      try connection.perform { session in
        try StageCheck.checkNeeds(self, plan: plan, session)
      }
    }
    var unwritten = UnwrittenValues()
    try step("the change of schema", number) {
      unwritten = try connection.perform { session in
        session.meter = meter
        defer { session.meter = nil }
        return try change.begin(session, after: earlier)
      }
    }
    return unwritten
  }

  private func step(
    _ name: String, _ number: String, _ body: () throws -> Void
  ) throws(InstarError) {
    do {
      try body()
    } catch {
      throw InstarError(error, what: "cannot run a stage").of(step: name, in: manifest, number)
    }
  }
}

extension InstarError {
  /// Returns the error of one step of a stage, as a run reports it.
  ///
  /// - Parameter number: The place of the stage in its run, such as "1 of 2".
  package func of(step: String, in stage: StageManifest, _ number: String) -> InstarError {
    let what = "cannot migrate from \(stage.from) to \(stage.to)"
    var error = about(stage: "\(stage.title(number)), \(step)")
    // Callers replace `what` by their own, so the cause has to keep it.
    if error.what != what { error.cause = "\(error.what): \(error.cause)" }
    error.what = what
    return error
  }
}
