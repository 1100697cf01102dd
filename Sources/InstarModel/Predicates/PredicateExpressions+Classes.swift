import Foundation
import InstarStore

// `is`, `as?` and `as!` between a model and its subclasses. The entity number of the row shows its class.

extension PredicateExpressions.TypeCheck: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    let cast = try ClassCast(of: input, to: Desired.self, self, lowering)
    return .value(.condition("ifnull(\(cast.condition), 0)", guards: cast.model.guards))
  }
}

extension PredicateExpressions.ConditionalCast: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    let cast = try ClassCast(of: input, to: Desired.self, self, lowering)
    return .model(cast.result)
  }
}

extension PredicateExpressions.ForceCast: LowerablePredicateExpression {
  func lower(_ lowering: PredicateLowering) throws -> PredicateTerm {
    let cast = try ClassCast(of: input, to: Desired.self, self, lowering)
    var model = cast.result
    model.guards.append("\(model.key) IS NOT NULL")
    model.isOptional = false
    return .model(model)
  }
}

/// A row that is cast to a class.
private struct ClassCast {
  let model: ModelTerm
  let entity: ModelEntity
  /// True for rows of the class, false or NULL for others.
  let condition: String

  init(
    of input: some PredicateExpression, to type: Any.Type, _ expression: some Any,
    _ lowering: PredicateLowering
  ) throws {
    guard case .model(let model) = try lowering.term(input),
      let type = type as? any PersistentModel.Type,
      let entity = lowering.stores.entity(named: type._modelDescriptor.name),
      entity.descriptor === type._modelDescriptor
    else { throw lowering.unsupported(expression, "the type is not a model of the store") }
    lowering.note(entity)
    self.model = model
    self.entity = entity
    if entity.layout.table != model.entity.layout.table {
      condition = "0"
    } else if let ofClass = entity.layout.rowCondition {
      condition = "\(model.rowAlias(lowering)).\(ofClass)"
    } else {
      condition = "\(model.key) IS NOT NULL"
    }
  }

  /// The row if it is of the class, else `nil`.
  var result: ModelTerm {
    ModelTerm(
      entity: entity, key: "(CASE WHEN \(condition) THEN \(model.key) END)", isOptional: true,
      guards: model.guards, scope: model.scope)
  }
}
