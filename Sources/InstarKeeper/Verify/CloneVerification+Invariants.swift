internal import GRDB
internal import InstarSchema
internal import InstarStore

// The checks of the plan's invariants. They read rows again only if one is violated, for the keys in the error.

extension CloneVerification {
  /// The clone, and the counts and answers that are compared.
  struct InvariantFacts {
    let db: Database
    /// As the clone names its tables.
    let layout: any StoreLayout
    let before: StoreCensus
    let after: StoreCensus
    let store: EarlierStore
  }

  /// Checks all invariants of the plan.
  ///
  /// - Throws: `invariantViolated` for the first that is violated.
  func requireInvariants(_ facts: InvariantFacts) throws {
    for invariant in path.invariants {
      guard let (cause, rows) = try violation(of: invariant, facts) else { continue }
      throw InstarError(
        .invariantViolated, Self.what,
        cause: "invariant '\(invariant.name)' of plan \(path.plan) is violated: \(cause)",
        next:
          "correct the code of the stages or the invariant, build the plugin, and \(CommandText.repetition)",
        rows: rows)
    }
  }

  private typealias Violation = (cause: String, rows: AffectedRows?)

  /// - Returns: What is violated; `nil` where the rule holds.
  private func violation(of invariant: Invariant, _ facts: InvariantFacts) throws -> Violation? {
    switch invariant.rule {
    case .rowsKept(let name):
      for entity in path.last.entities where name == nil || name == entity.name {
        if let violation = try lostRows(of: entity.name, facts) { return violation }
      }
    case .relationshipsKept(let name):
      for entity in path.last.entities {
        for relationship in entity.relationships
        where name == nil || name == entity.name || name == "\(entity.name).\(relationship.name)" {
          if let violation = try lostLinks(relationship, of: entity.name, facts) {
            return violation
          }
        }
      }
    case .returnsNothing(let query):
      guard let answer = facts.after.answers[query], answer.count > 0 else { return nil }
      let rows = AffectedRows(count: answer.count, keys: answer.firstRows)
      return ("the query returns \(rows.text)", rows)
    case .staysEqual(let query, _): return try changedAnswer(of: query, invariant, facts)
    }
    return nil
  }

  private func lostRows(of entity: String, _ facts: InvariantFacts) throws -> Violation? {
    guard let origin = path.origin(of: entity) else { return nil }
    let earlier = path.first.family(of: origin).reduce(0) { $0 + (facts.before.rows[$1] ?? 0) }
    let now = path.last.family(of: entity).reduce(0) { $0 + (facts.after.rows[$1] ?? 0) }
    guard now < earlier else { return nil }
    var lost: AffectedRows?
    if let old = facts.store.layout.entity(named: origin),
      let new = facts.layout.entity(named: entity)
    {
      try facts.store.read {
        lost = try KeyedRows(of: old).missing($0, in: KeyedRows(of: new), facts.db)
      }
    }
    let counts = "\(entity) had \(earlier) rows and has \(now)"
    return (
      lost.map { "\(counts): missing \($0.count == 1 ? "is" : "are") \($0.text)" } ?? counts, lost
    )
  }

  private func lostLinks(
    _ relationship: Schema.Relationship, of entity: String, _ facts: InvariantFacts
  ) throws -> Violation? {
    guard let origin = path.origin(of: relationship, in: entity),
      let earlier = facts.before.links[origin]?.count,
      let now = facts.after.links["\(entity).\(relationship.name)"]?.count, now < earlier
    else { return nil }
    let counts = "\(entity).\(relationship.name) had \(earlier) links and has \(now)"
    var lost: AffectedRows?
    var sentence: String?
    if let old = facts.store.layout.link(origin),
      let new = facts.layout.link("\(entity).\(relationship.name)")
    {
      let kept = LinkStatement.rows(new.location, of: new.owner, to: new.other)
      try facts.store.read {
        lost = try LinkStatement.rows(old.location, of: old.owner, to: old.other)
          .missing($0, in: kept, facts.db)
      }
      sentence = lost.map { Self.sentence(of: $0, in: old.location, old.owner, old.other) }
    }
    return (sentence.map { "\(counts); \($0)" } ?? counts, lost)
  }

  /// "row 4 of Note has lost its link"; of a join table, which has a row for each link, "row (4, 2) of Z_2TAGS is
  /// missing".
  private static func sentence(
    of lost: AffectedRows, in location: EntityLayout.RelationshipStorage.Location,
    _ owner: EntityLayout, _ other: EntityLayout
  ) -> String {
    let isOne = lost.count == 1
    let have = isOne ? "has lost its link" : "have lost their links"
    switch location {
    case .column: return "\(lost.text) of \(owner.name) \(have)"
    case .foreignKey: return "\(lost.text) of \(other.name) \(have)"
    case .joinTable(let table, _, _):
      return "\(lost.text) of \(table) \(isOne ? "is" : "are") missing"
    }
  }

  /// Larger answers are not read again: the digests of their rows take too much memory.
  private static let comparedRows = 100_000

  private func changedAnswer(
    of query: String, _ invariant: Invariant, _ facts: InvariantFacts
  ) throws -> Violation? {
    guard let earlierQuery = invariant.rule.query(before: path.from),
      let earlier = facts.before.answers[earlierQuery], let now = facts.after.answers[query],
      now != earlier
    else { return nil }
    if let old = earlier.onlyValue, let new = now.onlyValue, old != new {
      return ("the query returned \(old) before the run and \(new) after it", nil)
    }
    var counts = "the query returned \(earlier.count.counted("row")) before the run and "
    counts +=
      earlier.count == now.count ? "other values after it" : "\(now.count.counted("row")) after it"
    guard max(earlier.count, now.count) <= Self.comparedRows else {
      return ("\(counts); they are too many to find those that differ", nil)
    }
    let oldQuery = PlanQuery(earlierQuery, of: invariant.name)
    let newQuery = PlanQuery(query, of: invariant.name)
    let isThere = try newQuery.rowDigests(facts.db)
    var wasThere: Set<String> = []
    var gone: AffectedRows?
    try facts.store.read {
      wasThere = try oldQuery.rowDigests($0)
      gone = try oldQuery.rows($0, without: isThere)
    }
    let added = try newQuery.rows(facts.db, without: wasThere)
    let changes = [("missing", gone), ("new", added)].compactMap { change, rows in
      rows.map { "\(change): \($0.text)" }
    }
    guard !changes.isEmpty else {
      return ("\(counts), in another order or with repeated rows", nil)
    }
    return ("\(counts); \(changes.joined(separator: "; "))", gone ?? added)
  }
}
