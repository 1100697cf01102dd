import InstarStore

/// A term that may be `nil`, and the value that it has otherwise.
struct UnwrappedTerm {
  let value: PredicateTerm
  private let nilCondition: String
  private let outerGuards: [String]
  /// A column of a joined row is NULL if the key of the join is.
  private var joined: ModelTerm?

  /// `nil` for a term that is never optional.
  init?(_ optional: PredicateTerm) {
    switch optional {
    case .model(var model):
      (nilCondition, outerGuards) = ("\(model.key) IS NULL", model.guards)
      (model.guards, model.isOptional) = ([], false)
      joined = model
      value = .model(model)
    case .value(var plain):
      (nilCondition, outerGuards) = ("\(plain.sql) IS NULL", plain.guards)
      (plain.guards, plain.isOptional) = ([], false)
      value = .value(plain)
    case .elements(var elements):
      (nilCondition, outerGuards) = ("\(elements.json) IS NULL", elements.guards)
      (elements.guards, elements.isOptional) = ([], false)
      value = .elements(elements)
    case .composite(var composite):
      (nilCondition, outerGuards) = (composite.nilCondition, composite.guards)
      (composite.guards, composite.isOptional) = ([], false)
      value = .composite(composite)
    case .members, .nil, .list, .range: return nil
    }
  }

  /// Returns the result of an expression over the value, which is `nil` where the value is; `nil` for a result that
  /// cannot be optional.
  func optional(_ result: PredicateTerm) -> PredicateTerm? {
    switch result {
    case .value(var plain):
      if !isColumnOfJoinedRow(plain.columnAlias) {
        plain.sql = unlessNil(plain.sql)
        plain.columnAlias = nil
        plain.isPlainText = false
      }
      plain.isOptional = true
      plain.guards = guards(plain.guards)
      return .value(plain)
    case .model(var model):
      if !isColumnOfJoinedRow(model.keyAlias) {
        model.key = unlessNil(model.key)
        model.keyAlias = nil
        model.alias = nil
      }
      model.isOptional = true
      model.guards = guards(model.guards)
      return .model(model)
    case .members(var members):
      members.guards = guards(members.guards)
      return .members(members)
    case .elements(var elements):
      elements.json = unlessNil(elements.json)
      elements.isOptional = true
      elements.guards = guards(elements.guards)
      return .elements(elements)
    case .nil: return .nil
    case .composite, .list, .range: return nil
    }
  }

  private func unlessNil(_ sql: String) -> String {
    "CASE WHEN \(nilCondition) THEN NULL ELSE \(sql) END"
  }

  private func guards(_ inner: [String]) -> [String] {
    outerGuards + inner.map { "(\(nilCondition) OR \($0))" }
  }

  private func isColumnOfJoinedRow(_ alias: String?) -> Bool {
    guard let joined, let alias else { return false }
    return joined.scope.joins.contains {
      $0.alias == alias && $0.key == joined.key
        && $0.entity.layout.table == joined.entity.layout.table
    }
  }
}
