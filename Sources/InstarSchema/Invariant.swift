/// A fact about the rows of a store that a migration must keep.
///
/// A plan lists its invariants. The process that replaces a store's content checks them after the last stage, without
/// code of the plan: it reads the migrated clone, and the store as it was before. A violated invariant ends the run,
/// and the store stays as it was.
///
/// Entities and relationships have their names of the plan's last version. What is new in that version since the
/// store's version is not compared.
public struct Invariant: Sendable, Codable, Hashable {
  /// What is true after each migration.
  public enum Rule: Sendable, Codable, Hashable {
    /// An entity, with its subclasses, has at least as many rows as before; every entity if it is left out.
    case rowsKept(entity: String?)
    /// A relationship has at least as many links as before. `of` names it, "Note.folder", or an entity with all its
    /// relationships; all relationships if it is left out.
    case relationshipsKept(of: String?)
    /// The query returns no row from the migrated store.
    case returnsNothing(query: String)
    /// The query returns the same rows in the same order, before and after. `earlier` has the texts for stores of
    /// earlier versions, the oldest first.
    case staysEqual(query: String, earlier: [EarlierQuery])
  }

  /// The text of a query for stores at earlier versions, where tables or columns had other names.
  public struct EarlierQuery: Sendable, Codable, Hashable {
    /// The last version that has these names.
    public let upTo: Schema.Version
    /// One SELECT statement without parameters.
    public let query: String
  }

  /// What reports and errors call the invariant.
  public let name: String
  /// What is checked.
  public let rule: Rule

  private init(_ rule: Rule, _ name: String?) {
    self.rule = rule
    self.name = name ?? rule.sentence
  }
}

extension Invariant {
  /// Every entity has at least as many rows as before.
  public static var rowsKept: Invariant { rowsKept(of: nil as String?) }

  /// Every relationship has at least as many links as before.
  public static var relationshipsKept: Invariant { relationshipsKept(of: nil as String?) }

  /// An entity, with its subclasses, has at least as many rows as before.
  ///
  /// - Parameter entity: Its name in the plan's last version; `nil` for each entity.
  public static func rowsKept(of entity: String?, named name: String? = nil) -> Invariant {
    Invariant(.rowsKept(entity: entity), name)
  }

  /// A relationship has at least as many links as before.
  ///
  /// - Parameter path: "Note.folder", by the names of the plan's last version; an entity for all its relationships;
  ///   `nil` for all relationships of the plan.
  public static func relationshipsKept(of path: String?, named name: String? = nil) -> Invariant {
    Invariant(.relationshipsKept(of: path), name)
  }

  /// A query returns no row from the migrated store.
  ///
  /// An error shows up to five of the rows that it returned. So let the query return keys, not private values.
  ///
  /// - Parameter query: One SELECT statement without parameters, on the tables of the plan's last version.
  public static func returnsNothing(_ query: String, named name: String? = nil) -> Invariant {
    Invariant(.returnsNothing(query: query), name)
  }

  /// A query returns the same rows in the same order, from the store before its migration and afterwards.
  ///
  /// An error shows up to five rows that differ. So let the query return keys, not private values. A query of several
  /// rows needs `ORDER BY`: a migration may store rows in another order.
  ///
  /// ```swift
  /// .staysEqual(
  ///   "SELECT sum(amount) FROM entry",
  ///   upTo: [Schema.Version(1, 2, 0): "SELECT sum(value) FROM booking"])
  /// ```
  ///
  /// - Parameters:
  ///   - query: One SELECT statement without parameters, on the tables of the plan's last version.
  ///   - earlier: The texts for stores of earlier versions, where names differ. Each is for its version and those
  ///     before it, down to the next text.
  public static func staysEqual(
    _ query: String, upTo earlier: [Schema.Version: String] = [:], named name: String? = nil
  ) -> Invariant {
    let texts = earlier.sorted { $0.key < $1.key }.map { EarlierQuery(upTo: $0, query: $1) }
    return Invariant(.staysEqual(query: query, earlier: texts), name)
  }
}

extension Invariant.Rule {
  /// The query on a store at this version, before the stages; `nil` if there is none.
  package func query(before version: Schema.Version) -> String? {
    guard case .staysEqual(let query, let earlier) = self else { return nil }
    return earlier.first { version <= $0.upTo }?.query ?? query
  }

  /// The query on a store at the plan's last version; `nil` if there is none.
  package var query: String? {
    switch self {
    case .rowsKept, .relationshipsKept: nil
    case .returnsNothing(let query), .staysEqual(let query, _): query
    }
  }

  private static let longestQuery = 60

  /// What is true after a migration: "the rows of Note are kept".
  public var sentence: String {
    switch self {
    case .rowsKept(nil): "the rows of all models are kept"
    case .rowsKept(let entity?): "the rows of \(entity) are kept"
    case .relationshipsKept(nil): "all relationships are kept"
    case .relationshipsKept(let path?): "the relationships of \(path) are kept"
    case .returnsNothing(let query): "no row is returned by \(Self.short(query))"
    case .staysEqual(let query, _): "the same rows are returned by \(Self.short(query))"
    }
  }

  /// A query on one line, cut where it is long.
  private static func short(_ query: String) -> String {
    let line = query.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    return line.count > longestQuery ? "\(line.prefix(longestQuery))…" : line
  }
}
