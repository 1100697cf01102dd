import Foundation
import InstarSchema
import InstarStore

/// What a part of a predicate stands for in SQL.
enum PredicateTerm {
  case value(SQLValue)
  case model(ModelTerm)
  case members(MembersTerm)
  case elements(ElementsTerm)
  case composite(CompositeTerm)
  /// A constant array or set.
  case list([PredicateTerm])
  case range(RangeTerm)
  case `nil`
}

/// A value as an SQL expression.
///
/// Invariant: where all `guards` are true, the expression is NULL exactly where the value of the Swift expression is
/// `nil` (or not a number). So a value of type `Bool` is 0 or 1, never NULL, and SQL's third truth value cannot appear.
struct SQLValue {
  var sql: String
  var kind: Kind
  var isOptional = false
  /// What must hold for the Swift expression to have a value at all: the operand of each `!` is not nil. Where one does
  /// not hold Swift throws, and the row does not match.
  var guards: [String] = []
  /// Arithmetic can give NaN, which SQLite keeps as NULL.
  var canBeNotANumber = false
  /// The table alias, where the expression is nothing but a column of that table.
  var columnAlias: String?
  /// A constant text that is canonically equivalent to no other one: it can be compared byte by byte.
  var isPlainText = false

  enum Kind: Equatable {
    case bool, integer
    /// 64 bits without sign, stored by their bits.
    case unsigned
    case real, float, decimal, text, url, date, blob, comparisonResult
    /// A value of a Codable type: only whether it is nil can be told.
    case json
    /// The key of a row, with the root entity it belongs to.
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
  }

  static func condition(_ sql: String, guards: [String] = []) -> SQLValue {
    SQLValue(sql: sql, kind: .bool, guards: guards)
  }

  /// The condition under which a row matches, guards included.
  var matchCondition: String { (guards + [sql]).joined(separator: " AND ") }
}

/// A row of an entity, named by its key.
struct ModelTerm {
  var entity: ModelEntity
  /// The expression that gives the row's key.
  var key: String
  var isOptional = false
  var guards: [String] = []
  /// The alias of the row's table, where the key is that row's own.
  var alias: String?
  /// The alias of the table whose column the key is.
  var keyAlias: String?
  /// The query that a join to the row's table belongs to.
  var scope: QueryScope

  /// The alias of the row's table, which is joined where it is not there yet.
  func rowAlias(_ lowering: PredicateLowering) -> String {
    alias ?? scope.alias(of: entity, key: key, makeAlias: lowering.makeAlias)
  }
}

/// The members of a to-many relationship, as far as filters let them through.
struct MembersTerm {
  var entity: ModelEntity
  var place: EntityLayout.RelationshipStorage.Place
  var ownerKey: String
  var guards: [String] = []
  var filters: [Test] = []

  /// A condition on one member, or one element.
  typealias Test = (PredicateTerm) throws -> SQLValue
}

/// The elements of a property that holds an array or a set of plain values, as far as filters let them through.
struct ElementsTerm {
  /// The expression that gives the property's JSON.
  var json: String
  /// What each element is.
  var element: Element
  var isOptional = false
  var guards: [String] = []
  var filters: [MembersTerm.Test] = []

  struct Element {
    var type: Schema.AttributeType
    var isOptional: Bool

    /// What the elements of a collection type are in SQL; `nil` where they have no counterpart there.
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
      // JSON has no bytes; Foundation writes them as Base64.
      case .codable, .data: return nil
      // Above the largest signed number SQLite reads a real one.
      case .int64 where element is any Unsigned64.Type: return nil
      default: break
      }
    }

    /// The element that `name` stands for.
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

/// A value that is kept in several columns.
struct CompositeTerm {
  /// The values of the columns, in their order.
  var leaves: [SQLValue]
  /// The fields that the columns hold; `nil` for an enum, whose columns are its cases.
  var fields: [CodableForm.Field]?
  /// Holds where there is no value.
  var isNil: String
  var isOptional = false
  var guards: [String] = []
}

extension PredicateTerm {
  /// What must hold for a sequence to have a value at all.
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

/// One SELECT, outer or inner, and the tables that paths through to-one relationships join to it.
final class QueryScope {
  private(set) var joins: [(alias: String, entity: ModelEntity, key: String)] = []

  /// The alias of the table that holds the row with that key. The same path is joined once.
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
