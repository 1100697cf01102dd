import Foundation
import InstarSchema
import InstarStore

/// Translates Foundation's predicate trees to SQL conditions that match the same rows.
///
/// They have Swift's meaning, not SQL's: `nil == nil` is true, canonically equivalent texts are equal, the order of
/// text is by Unicode scalars, and "contains" compares characters. Values are always bound, never written into the
/// SQL. A part without such a condition throws an error that names it.
final class PredicateLowering {
  let stores: ModelStores
  /// The entity whose rows the predicate selects.
  private let store: ModelStore
  private(set) var parameters: [Slot] = []
  /// The entities that the predicate depends on. If one has unsaved changes, SQL cannot evaluate the predicate.
  private(set) var entities: [ModelEntity] = []
  private var variables: [PredicateExpressions.VariableID: PredicateTerm] = [:]
  private var aliasCount = 0
  /// How deep the part that is translated is in the predicate.
  private var depth = 0

  /// Each part is translated within the one around it, and the stack has an end.
  private static let depthLimit = 1_000

  /// Whether a row may match by a value that the property's type cannot decode: SQLite compares text with numbers, and
  /// finds it greater. A fetch returns such rows, and reading the value is an error; a deletion reads no value.
  let matchesUndecodable: Bool

  init(stores: ModelStores, store: ModelStore, matchesUndecodable: Bool = true) {
    self.stores = stores
    self.store = store
    self.matchesUndecodable = matchesUndecodable
  }

  /// The condition for the rows of `row`.
  func lower<T: PersistentModel>(_ predicate: Predicate<T>, row: ModelTerm) throws -> SQLValue {
    note(row.entity)
    variables[predicate.variable.key] = .model(row)
    return try condition(predicate.expression)
  }

  func makeAlias() -> String {
    defer { aliasCount += 1 }
    return "t\(aliasCount)"
  }

  func note(_ entity: ModelEntity) {
    if !entities.contains(where: { $0 === entity }) { entities.append(entity) }
  }

  func bind(_ slot: Slot) -> String {
    parameters.append(slot)
    return "?\(parameters.count)"
  }

  // MARK: Parts

  func term(_ expression: some PredicateExpression) throws -> PredicateTerm {
    depth += 1
    defer { depth -= 1 }
    guard depth <= Self.depthLimit else { throw Self.tooDeep("\(Self.depthLimit) levels") }
    // Evaluates a part without variables. For a part with variables this throws.
    if let value = try? expression.evaluate(PredicateBindings()), let term = try constant(value) {
      return term
    }
    guard let lowerable = expression as? any LowerablePredicateExpression else {
      throw unsupported(expression)
    }
    return try lowerable.lower(self)
  }

  func value(_ expression: some PredicateExpression) throws -> SQLValue {
    guard case .value(let value) = try term(expression) else {
      throw unsupported(expression, "the expression is not a single value")
    }
    return value
  }

  func condition(_ expression: some PredicateExpression) throws -> SQLValue {
    let value = try value(expression)
    guard value.kind == .bool else {
      throw unsupported(expression, "the expression is not a condition")
    }
    return value
  }

  func text(_ expression: some PredicateExpression) throws -> SQLValue {
    let value = try value(expression)
    guard value.kind == .text else { throw unsupported(expression, "the expression is not a text") }
    return value
  }

  func variable(_ key: PredicateExpressions.VariableID) -> PredicateTerm? { variables[key] }

  /// Translates a part in which `variable` stands for `term`.
  func with<Result>(
    _ variable: PredicateExpressions.VariableID, _ term: PredicateTerm, _ body: () throws -> Result
  ) rethrows -> Result {
    let outer = variables.updateValue(term, forKey: variable)
    defer { variables[variable] = outer }
    return try body()
  }

  func unsupported(_ expression: some Any, _ reason: String? = nil) -> SwiftDataError {
    SwiftDataError(
      .unsupportedPredicate,
      InstarError(
        .unsupported, "cannot fetch with this predicate",
        cause: "`\(textNamingProperties(expression))` cannot be expressed in SQL"
          + (reason.map { ": \($0)" } ?? ""),
        next: "fetch without this part, and filter the models in Swift"))
  }

  static func tooDeep(_ limit: String) -> SwiftDataError {
    SwiftDataError(
      .unsupportedPredicate,
      InstarError(
        .unsupported, "cannot fetch with this predicate",
        cause: "the predicate nests its conditions deeper than \(limit)",
        next: "combine fewer predicates, or filter the models in Swift"))
  }

  /// Returns the text of an expression with the names of properties.
  private func textNamingProperties(_ expression: Any) -> String {
    var text = "\(expression)"
    for keyPath in keyPaths(in: expression) {
      text = text.replacingOccurrences(
        of: "\(keyPath)", with: ModelDescriptor.text(of: keyPath))
    }
    return text
  }

  /// Returns the key paths that an expression contains, at any depth.
  ///
  /// They are read from the expression, because the text of a key path is not the same everywhere: equal key paths that
  /// two source files wrote can have getters at two addresses.
  private func keyPaths(in part: Any) -> [AnyKeyPath] {
    if let keyPath = part as? AnyKeyPath { return [keyPath] }
    return Mirror(reflecting: part).children.flatMap { keyPaths(in: $0.value) }
  }

  // MARK: Constants

  /// Returns the term of a constant; `nil` for types that attributes cannot have.
  func constant(_ value: Any) throws -> PredicateTerm? {
    if let optional = value as? any OptionalValue {
      guard let wrapped = optional.wrappedValue else { return .nil }
      guard case .value(var value) = try constant(wrapped) else { return try constant(wrapped) }
      value.isOptional = true
      return .value(value)
    }
    switch value {
    case let text as String: return .value(bindText(text))
    case let text as Substring: return .value(bindText(String(text)))
    case let character as Character: return .value(bindText(String(character)))
    case let bool as Bool: return .value(SQLValue(sql: bool ? "1" : "0", kind: .bool))
    case let double as Double: return try .value(bindReal(double, .real))
    case let number as CGFloat: return try .value(bindReal(Double(number), .real))
    case let float as Float: return try .value(bindReal(Double(float), .float))
    case let result as ComparisonResult:
      return .value(SQLValue(sql: "\(result.rawValue)", kind: .comparisonResult))
    case let decimal as Decimal:
      guard !decimal.isNaN else { throw unsupported(decimal, "SQLite has no such number") }
      return .value(SQLValue(sql: "CAST(\(bind(decimal.slot)) AS NUMERIC)", kind: .decimal))
    case is UInt, is UInt64:
      guard let slot = (value as? any PersistentAttribute)?.slot else { return nil }
      return .value(SQLValue(sql: bind(slot), kind: .unsigned))
    case let identifier as PersistentIdentifier: return .value(key(of: identifier))
    case let model as any PersistentModel:
      guard let entity = stores.entity(named: model._modelStorage.descriptor.name),
        entity.store === store
      else { return nil }
      note(entity)
      let key = key(of: model.persistentModelID)
      return .model(ModelTerm(entity: entity, key: key.sql, scope: QueryScope()))
    case let attribute as any PersistentAttribute:
      let slot = attribute.slot
      guard !slot.isNotANumber else {
        throw unsupported(attribute, "SQLite has no such number")
      }
      return .value(
        SQLValue(
          sql: bind(slot), kind: SQLValue.Kind(type(of: attribute).attributeType)))
    case let range as any ConstantRange: return try term(of: range).map { .range($0) }
    case let raw as any RawRepresentable: return try constant(raw.rawValue)
    case let sequence as any Collection:
      var elements: [Any] = []
      for element in sequence { elements.append(element) }
      return .list(elements)
    case let codable as any Codable: return composite(of: codable).map { .composite($0) }
    default: return nil
    }
  }

  /// Binds the constants of a list, which were bound last, as one parameter.
  ///
  /// SQLite searches all numbered parameters for each of them, so those of a long list take quadratic time.
  ///
  /// - Returns: The list as a subquery; `nil` if JSON does not keep each value exactly.
  func list(fromParameter start: Int, _ kind: SQLValue.Kind) throws -> String? {
    let slots = parameters[start...]
    var element = "value"
    let json: Slot
    switch kind {
    case .integer, .unsigned, .identifier:
      // Without the identifiers of other stores, which no row has.
      json = ModelContext.list(
        slots.compactMap { if case .integer(let integer) = $0 { integer } else { nil } })
    case .text, .url:
      let texts = slots.compactMap { if case .text(let text) = $0 { text } else { nil } }
      // SQLite ends a text in JSON there.
      if texts.contains(where: { $0.utf8.contains(0) }) { return nil }
      json = try Self.json(texts)
    case .blob:
      let identifiers = slots.compactMap { UUID(slot: $0)?.uuidString }
      guard identifiers.count == slots.count else { return nil }
      json = try Self.json(identifiers)
      element = "\(PredicateFunctions.uuid)(value)"
    case .bool, .real, .float, .decimal, .date, .comparisonResult, .json: return nil
    }
    parameters.removeSubrange(start...)
    return "(SELECT \(element) FROM json_each(\(bind(json))))"
  }

  private static func json(_ texts: [String]) throws -> Slot {
    .text(String(decoding: try JSONEncoder().encode(texts), as: UTF8.self))
  }

  private func term(of range: any ConstantRange) throws -> RangeTerm? {
    var term = RangeTerm(includesUpper: range.includesUpper)
    for (bound, path) in [(range.bounds.lower, \RangeTerm.lower), (range.bounds.upper, \.upper)] {
      guard let bound else { continue }
      guard case .value(let value) = try constant(bound) else { return nil }
      term[keyPath: path] = value
    }
    return term
  }

  private func key(of identifier: PersistentIdentifier) -> SQLValue {
    let entity = stores.entity(named: identifier.entityName)
    // An unsaved model, or one of another store, has no row in this store. Its key is a number that no key is equal to,
    // not NULL, because then also `!=` would not match.
    let isHere = stores.mayHave(identifier, in: store)
    return SQLValue(
      sql: bind(isHere ? .integer(identifier.id.key) : .real(-1e19)),
      kind: .identifier(root: entity?.layout.root ?? identifier.entityName))
  }

  private func bindText(_ text: String) -> SQLValue {
    // The ASCII characters that other characters decompose to (KELVIN SIGN, GREEK QUESTION MARK, VARIA).
    let isPlain = text.utf8.allSatisfy {
      $0 < 0x80 && $0 != UInt8(ascii: "K") && $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: "`")
    }
    return SQLValue(sql: bind(.text(text)), kind: .text, isPlainText: isPlain)
  }

  private func bindReal(_ real: Double, _ kind: SQLValue.Kind) throws -> SQLValue {
    guard !real.isNaN else { throw unsupported(real, "SQLite has no such number") }
    return SQLValue(sql: bind(.real(real)), kind: kind)
  }
}

/// A part of a predicate that can be translated to SQL.
protocol LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm
}

/// `Optional` of any type.
protocol OptionalValue {
  var wrappedValue: Any? { get }
}

extension Optional: OptionalValue {
  var wrappedValue: Any? { map { $0 } }
}

/// A constant range.
protocol ConstantRange {
  /// The bounds; a missing one is `nil`.
  var bounds: (lower: Any?, upper: Any?) { get }
  var includesUpper: Bool { get }
}

extension ConstantRange {
  var includesUpper: Bool { true }
}

extension Range: ConstantRange {
  var bounds: (lower: Any?, upper: Any?) { (lowerBound, upperBound) }
  var includesUpper: Bool { false }
}

extension ClosedRange: ConstantRange {
  var bounds: (lower: Any?, upper: Any?) { (lowerBound, upperBound) }
}

extension PartialRangeFrom: ConstantRange {
  var bounds: (lower: Any?, upper: Any?) { (lowerBound, nil) }
}

extension PartialRangeThrough: ConstantRange {
  var bounds: (lower: Any?, upper: Any?) { (nil, upperBound) }
}

extension PartialRangeUpTo: ConstantRange {
  var bounds: (lower: Any?, upper: Any?) { (nil, upperBound) }
  var includesUpper: Bool { false }
}
