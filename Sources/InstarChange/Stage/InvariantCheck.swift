package import InstarSchema
import InstarStore

/// Refuses invariants that cannot be checked, before any store is opened.
package enum InvariantCheck {
  /// Checks that the last version has the entities and relationships that invariants name, and that each query
  /// compiles on the empty store of each version that it is for.
  ///
  /// - Parameter versions: All versions of the plan, the oldest first.
  /// - Throws: `invalidPlan`, naming the invariant.
  package static func check(
    _ invariants: [Invariant], of plan: String, _ versions: [PlanVersion]
  ) throws(InstarError) {
    guard !invariants.isEmpty, let last = versions.last else { return }
    for invariant in invariants { try requireNames(of: invariant, plan, last.schema) }
    for version in versions {
      let number = version.schema.version
      let queries = invariants.compactMap { invariant in
        (number == last.schema.version
          ? invariant.rule.query : invariant.rule.query(before: number))
          .map { (invariant, PlanQuery($0)) }
      }
      guard !queries.isEmpty, let store = try emptyStore(of: version.layout) else { continue }
      for (invariant, query) in queries {
        do {
          try store.perform { try query.requireCompiles($0.database) }
        } catch {
          let cause = InstarError(error, what: "cannot compile a query").cause
          throw failure(
            invariant, plan, "at version \(number), \(cause)",
            next: "correct the query for version \(number)")
        }
      }
    }
  }

  /// - Parameter cause: What is wrong with the invariant.
  package static func failure(
    _ invariant: Invariant, _ plan: String, _ cause: String, next: String
  ) -> InstarError {
    InstarError(
      .invalidPlan, "cannot use plan \(plan)", cause: "invariant '\(invariant.name)': \(cause)",
      next: next)
  }

  /// - Returns: `nil` where only the store itself has what a table of it needs. Its queries are compiled there.
  private static func emptyStore(of layout: any StoreLayout) throws(InstarError) -> EmptyStore? {
    do {
      return try EmptyStore(of: layout)
    } catch {
      guard error.code == .unexpectedStructure else { throw error }
      return nil
    }
  }

  private static func requireNames(
    of invariant: Invariant, _ plan: String, _ last: Schema
  ) throws(InstarError) {
    let name: String
    var known = last.entities.map(\.name)
    switch invariant.rule {
    case .rowsKept(let entity?): name = entity
    case .relationshipsKept(let path?):
      name = path
      known += last.entities.flatMap { entity in
        entity.relationships.map { "\(entity.name).\($0.name)" }
      }
    case .rowsKept(nil), .relationshipsKept(nil), .returnsNothing, .staysEqual: return
    }
    guard !known.contains(name) else { return }
    throw failure(
      invariant, plan, "version \(last.version), the last one, has no '\(name)'",
      next: Suggestion.nearest(to: name, among: known).map { "write \"\($0)\"" }
        ?? "name an entity or a relationship of version \(last.version)")
  }
}
