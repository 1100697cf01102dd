import Foundation
import InstarSchema
import InstarStore

/// A part of a predicate in SQL.
enum PredicateTerm {
  case value(SQLValue)
  case model(ModelTerm)
  case members(MembersTerm)
  case elements(ElementsTerm)
  case composite(CompositeTerm)
  /// A constant array or set, whose elements are not bound yet.
  case list([Any])
  case range(RangeTerm)
  case `nil`
}

/// A value as an SQL expression.
///
/// Invariant: if all `guards` are true, the expression is NULL exactly if the Swift expression is `nil` (or not a
/// number). So a value of type `Bool` is 0 or 1, never NULL, and SQL's third truth value cannot occur.
struct SQLValue {
  var sql: String { didSet { chain = nil } }
  var kind: Kind
  var isOptional = false
  /// The conditions under which the Swift expression has a value: the operand of each `!` is not `nil`. If one is
  /// false, Swift throws, and the row does not match.
  var guards: [String] = []
  /// Whether the value may be NaN, which SQLite stores as NULL.
  var canBeNotANumber = false
  /// The alias of the table if the expression is one of its columns.
  var columnAlias: String?
  /// Whether the value is a constant text without canonically equivalent ones, which SQL can compare by bytes.
  var isPlainText = false
  /// The conditions that the expression joins; `nil` for other expressions.
  var chain: Chain?

  enum Kind: Equatable {
    case bool, integer
    /// An unsigned 64-bit integer, stored as a signed one with the same bits.
    case unsigned
    case real, float, decimal, text, url, date, blob, comparisonResult
    /// A value of a Codable type, which SQL can only compare with `nil`.
    case json
    /// The key of a row of a root entity.
    case identifier(root: String)

    init(_ type: Schema.AttributeType) {
      switch type {
      case .bool: self = .bool
      case .int16, .int32, .int64: self = .integer
      case .decimal: self = .decimal
      case .double: self = .real
      case .float: self = .float
      case .string: self = .text
      case .date: self = .date
      case .data, .uuid: self = .blob
      case .codable: self = .json
      case .url: self = .url
      }
    }

    /// The condition under which a column's stored value is one of this kind; `nil` where every value may be.
    func decodableCondition(_ column: StoredColumn, alias: String) -> String? {
      guard column.encoding == nil else { return nil }
      let type = "typeof(\(alias).\(column.name))"
      switch self {
      case .bool, .integer, .unsigned, .real, .float, .date, .comparisonResult:
        return "\(type) NOT IN ('text', 'blob')"
      case .text, .url: return "\(type) <> 'blob'"
      case .decimal, .blob, .json, .identifier: return nil
      }
    }
  }

  static func condition(_ sql: String, guards: [String] = []) -> SQLValue {
    SQLValue(sql: sql, kind: .bool, guards: guards)
  }

  /// The condition for a matching row, with the guards.
  var matchCondition: String { (guards + [sql]).joined(separator: " AND ") }
}

/// A row of an entity, identified by its key.
struct ModelTerm {
  var entity: ModelEntity
  /// The expression for the row's key.
  var key: String
  var isOptional = false
  var guards: [String] = []
  /// The alias of the row's table if the key is the row's own.
  var alias: String?
  /// The alias of the table that has the key as a column.
  var keyAlias: String?
  /// The query that joins the row's table.
  var scope: QueryScope

  /// Returns the alias of the row's table, and joins the table at the first call.
  func rowAlias(_ lowering: PredicateLowering) -> String {
    alias ?? scope.alias(of: entity, key: key, makeAlias: lowering.makeAlias)
  }
}

/// The members of a to-many relationship that match the filters.
struct MembersTerm {
  var entity: ModelEntity
  var location: EntityLayout.RelationshipStorage.Location
  var ownerKey: String
  var guards: [String] = []
  var filters: [Test] = []

  /// A condition on one member or element.
  typealias Test = (PredicateTerm) throws -> SQLValue
}

/// The elements of an array or a set of plain values that match the filters.
struct ElementsTerm {
  /// The expression for the property's JSON.
  var json: String
  /// The type of the elements.
  var element: Element
  var isOptional = false
  var guards: [String] = []
  var filters: [MembersTerm.Test] = []

  struct Element {
    var type: Schema.AttributeType
    var isOptional: Bool

    /// Returns the kind of the elements of a collection type in SQL; `nil` if they have no counterpart.
    init?(of collection: any Any.Type) {
      let collection = (collection as? any OptionalType.Type)?.wrappedType ?? collection
      guard let sequence = collection as? any Collection.Type else { return nil }
      self.init(ofSequence: sequence)
    }

    private init?<Sequence: Collection>(ofSequence type: Sequence.Type) {
      let element: any Any.Type = Sequence.Element.self
      isOptional = element is any OptionalType.Type
      self.type = CodableForm.attributeType(of: element)
      switch self.type {
      // Foundation writes bytes as Base64, because JSON has no bytes.
      case .codable, .data: return nil
      // SQLite reads numbers above the largest signed integer as reals.
      case .int64 where element is any Unsigned64.Type: return nil
      default: break
      }
    }

    /// Returns the element that `name` stands for.
    func value(_ name: String) -> SQLValue {
      let sql =
        switch type {
        case .bool: "(\(name) <> 0)"
        case .float: "\(PredicateFunctions.float)(\(name))"
        case .uuid: "\(PredicateFunctions.uuid)(\(name))"
        default: name
        }
      return SQLValue(sql: sql, kind: SQLValue.Kind(type), isOptional: isOptional)
    }
  }
}

/// A value in several columns.
struct CompositeTerm {
  /// The values of the columns, in their order.
  var leaves: [SQLValue]
  /// The fields in the columns; `nil` for an enum, whose columns are its cases.
  var fields: [CodableForm.Field]?
  /// The condition that is true if the value is `nil`.
  var nilCondition: String
  var isOptional = false
  var guards: [String] = []
}

extension PredicateTerm {
  /// The conditions under which a sequence has a value.
  var guardsOfSequence: [String] {
    switch self {
    case .members(let members): members.guards
    case .elements(let elements): elements.guards
    default: []
    }
  }
}

struct RangeTerm {
  var lower: SQLValue?
  var upper: SQLValue?
  var includesUpper: Bool
}

/// One SELECT, outer or inner, and the tables that it joins for paths through to-one relationships.
final class QueryScope {
  private(set) var joins: [(alias: String, entity: ModelEntity, key: String)] = []

  /// Returns the alias of the joined table with the row of a key. Each path is joined once.
  func alias(of entity: ModelEntity, key: String, makeAlias: () -> String) -> String {
    if let made = joins.first(where: {
      $0.entity.layout.table == entity.layout.table && $0.key == key
    }) {
      return made.alias
    }
    let alias = makeAlias()
    joins.append((alias, entity, key))
    return alias
  }

  var joinClauses: String {
    joins.map { alias, entity, key in
      " LEFT JOIN \(entity.layout.table) AS \(alias) "
        + "ON \(entity.layout.key.condition(alias, equals: key))"
    }.joined()
  }
}
