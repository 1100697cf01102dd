import SwiftDiagnostics
import SwiftSyntax

/// What the macros refuse. Each message says what to write instead.
enum Problem {
  case conditionalProperty
  case constantProperty(property: String)
  case constraintOfOtherModel(macro: String, named: String, model: String)
  case constraintOutsideModel(macro: String)
  case contradictoryMarkers(property: String)
  case constraintWithoutModel(macro: String, model: String)
  case deleteRuleAsOption(rule: String)
  case genericModel(name: String)
  case markerOnComputedProperty(PropertyMarker.Kind, property: String)
  case markerOnLazyProperty(PropertyMarker.Kind, property: String)
  case markerOnOtherDeclaration(PropertyMarker.Kind)
  case markerOnStaticProperty(PropertyMarker.Kind, property: String)
  case markerOutsideModel(PropertyMarker.Kind)
  case missingInitializer(name: String)
  case missingInitializerOfSubclass(name: String, superclass: String)
  case missingType(property: String)
  case modelOnOtherDeclaration
  case notAClass(kind: String, name: String)
  case notAnActor
  case observedProperty(property: String)
  case overriddenProperty(property: String)
  case pluginNotAtFileScope
  case pluginPlanNamedTwice(name: String)
  case pluginPlanWithoutSelf(expression: String)
  case pluginWithoutPlans
  case severalBindings
  case tableOutsideModel
  case transientWithMarker(PropertyMarker.Kind)
  case transientWithoutValue(property: String)
  case tuplePattern
  case unknownOption(PropertyMarker.Kind, option: String, known: [String])
  case weakProperty(property: String, modifier: String)
}

extension Problem: DiagnosticMessage {
  /// What SwiftData compiles and passes over is compiled here, too.
  var severity: DiagnosticSeverity {
    switch self {
    case .markerOnComputedProperty, .markerOnLazyProperty, .markerOnStaticProperty,
      .observedProperty:
      .warning
    default: .error
    }
  }

  var diagnosticID: MessageID {
    // The name of the case, without its associated values.
    let name = String(describing: self).prefix { $0 != "(" }
    return MessageID(domain: "InstarMacros", id: String(name))
  }

  var message: String {
    switch self {
    case .conditionalProperty:
      """
      A stored property of a model cannot depend on '#if', because the schema of a version is the \
      same in every build; declare the property unconditionally or mark it '@Transient'.
      """
    case .constantProperty(let property):
      """
      '\(property)' must be declared with 'var', because Instar fills it when the model is read \
      from a store; write 'private(set) var' to keep others from changing it.
      """
    case .constraintOfOtherModel(let macro, let named, let model):
      """
      '#\(macro)<\(named)>' has no effect in model '\(model)', because its paths are those of another \
      model; write '#\(macro)<\(model)>'.
      """
    case .constraintOutsideModel(let macro):
      "'#\(macro)' has an effect only in the body of a class marked '@Model'; move it there."
    case .contradictoryMarkers(let property):
      """
      '\(property)' can have only one '@Attribute' or '@Relationship'; merge their arguments into \
      one, or remove one of them.
      """
    case .constraintWithoutModel(let macro, let model):
      "'#\(macro)' has to name its model, so that its paths have a type; write '#\(macro)<\(model)>'."
    case .deleteRuleAsOption(let rule):
      "'.\(rule)' is a delete rule, not an option; write 'deleteRule: .\(rule)'."
    case .genericModel(let name):
      """
      Model '\(name)' cannot be generic, because an entity of a schema is one concrete type; \
      declare one class for each kind of value.
      """
    case .markerOnComputedProperty(let kind, let property):
      """
      '@\(kind.rawValue)' has no effect on '\(property)', because a computed property is not \
      stored; remove '@\(kind.rawValue)', or make '\(property)' a stored property.
      """
    case .markerOnLazyProperty(let kind, let property):
      """
      '@\(kind.rawValue)' has no effect on '\(property)', because a lazy property is not \
      persisted; remove '@\(kind.rawValue)', or remove 'lazy'.
      """
    case .markerOnOtherDeclaration(let kind):
      "'@\(kind.rawValue)' can only be applied to a stored property of a class marked '@Model'."
    case .markerOnStaticProperty(let kind, let property):
      """
      '@\(kind.rawValue)' has no effect on '\(property)', because a static property belongs to no \
      row; remove '@\(kind.rawValue)', or make '\(property)' an instance property.
      """
    case .markerOutsideModel(let kind):
      """
      '@\(kind.rawValue)' has an effect only in a class marked '@Model'; mark the class, or remove \
      '@\(kind.rawValue)'.
      """
    case .missingInitializer(let name):
      """
      Model '\(name)' needs an initializer of its own, because '@Model' adds one and Swift then \
      no longer provides 'init()'; write one that sets its properties.
      """
    case .missingInitializerOfSubclass(let name, let superclass):
      """
      Model '\(name)' needs an initializer of its own, because '@Model' adds one and Swift then does not inherit those \
      of '\(superclass)'; write one that sets its properties and calls 'super.init'.
      """
    case .missingType(let property):
      "'\(property)' needs a type or an initial value; write 'var \(property): Type'."
    case .modelOnOtherDeclaration:
      "'@Model' can only be applied to a class; write it in front of 'final class'."
    case .notAClass(let kind, let name):
      """
      '@Model' cannot be applied to \(kind) '\(name)', because one row is one object that is \
      shared by all who refer to it; write 'final class \(name)'.
      """
    case .notAnActor:
      """
      '@ModelActor' can only be applied to an actor, because a context must be used by one thread at \
      a time.
      """
    case .observedProperty(let property):
      """
      The observers of '\(property)' are never called, because '@Model' gives it accessors of its own; \
      mark it '@Transient', or set it through a method that does what the observer does.
      """
    case .overriddenProperty(let property):
      """
      '\(property)' cannot override a property of the superclass, because both are one value of one row; remove it, and \
      set the inherited one in an initializer.
      """
    case .pluginNotAtFileScope:
      "'#InstarPlugin' declares a C entry point; write it at file scope, outside of any type."
    case .pluginPlanNamedTwice(let name):
      "Plan '\(name)' is named twice; name each plan once."
    case .pluginPlanWithoutSelf(let expression):
      """
      '#InstarPlugin' takes the names of types, followed by '.self'; write the plan's type \
      instead of '\(expression)', as in '#InstarPlugin(NotesMigrationPlan.self)'.
      """
    case .pluginWithoutPlans:
      """
      '#InstarPlugin' needs at least one migration plan; write \
      '#InstarPlugin(NotesMigrationPlan.self)'.
      """
    case .severalBindings:
      "Each property of a model needs a 'var' of its own; declare them one by one."
    case .tableOutsideModel:
      "'@Table' has an effect only on a class marked '@Model'; mark the class, or remove '@Table'."
    case .transientWithMarker(let kind):
      """
      '@\(kind.rawValue)' has no effect on a '@Transient' property, because it is not stored; \
      remove one of the two.
      """
    case .transientWithoutValue(let property):
      """
      '@Transient' property '\(property)' needs an initial value, because models that are read \
      from a store do not pass through the initializers of their class; add one, or make it \
      optional.
      """
    case .tuplePattern:
      """
      A property of a model cannot be declared by a pattern; declare each one by its own 'var' \
      with a name and a type.
      """
    case .unknownOption(let kind, let option, let known):
      """
      '@\(kind.rawValue)' has no option '.\(option)'; it has \
      \(known.map { "'.\($0)'" }.joined(separator: ", ")).
      """
    case .weakProperty(let property, let modifier):
      """
      '\(property)' cannot be '\(modifier)', because it is stored as a relationship and its \
      context keeps the models; remove '\(modifier)', or mark the property '@Transient'.
      """
    }
  }
}

/// What a fix-it does, as an editor shows it.
enum Repair {
  case appendSelf
  case insertInitialValue
  case insertInitializer
  case insertInitializerOfSubclass
  case insertType
  case makeActor
  case makeFinalClass
  case nameModel(String)
  case removeMarker(PropertyMarker.Kind)
  case removeModifier(String)
  case replaceLetByVar
  case replaceOption(String)
  case separateBindings
  case writeDeleteRule(String)
}

extension Repair: FixItMessage {
  var fixItID: MessageID {
    let name = String(describing: self).prefix { $0 != "(" }
    return MessageID(domain: "InstarMacros", id: String(name))
  }

  var message: String {
    switch self {
    case .appendSelf: "append '.self'"
    case .insertInitialValue: "insert an initial value"
    case .insertInitializer: "insert an initializer for all properties"
    case .insertInitializerOfSubclass: "insert an initializer that calls 'super.init'"
    case .insertType: "insert a type"
    case .makeActor: "replace by 'actor'"
    case .makeFinalClass: "replace by 'final class'"
    case .nameModel(let name): "name '\(name)'"
    case .removeMarker(let kind): "remove '@\(kind.rawValue)'"
    case .removeModifier(let modifier): "remove '\(modifier)'"
    case .replaceLetByVar: "replace 'let' by 'var'"
    case .replaceOption(let name): "replace by '.\(name)'"
    case .separateBindings: "declare each property by its own 'var'"
    case .writeDeleteRule(let rule): "write 'deleteRule: .\(rule)'"
    }
  }
}

/// Text that an editor shows as something to fill in, and that the compiler refuses.
func editorPlaceholder(_ text: String) -> String {
  "<#\(text)#>"
}

extension FixIt {
  /// Replaces the text of `node`, not the spaces and comments around it.
  static func replaceText(
    of node: some SyntaxProtocol, with text: String, message: Repair
  ) -> FixIt {
    FixIt(
      message: message,
      changes: [.replaceText(range: node.trimmedRange, with: text, in: Syntax(node))])
  }

  /// Inserts `text` directly behind `node`.
  static func insert(
    _ text: String, after node: some SyntaxProtocol, message: Repair
  ) -> FixIt {
    let end = node.endPositionBeforeTrailingTrivia
    return FixIt(
      message: message, changes: [.replaceText(range: end..<end, with: text, in: Syntax(node))])
  }

  /// Removes `node` and the spaces behind it, up to the next token.
  static func remove(_ node: some SyntaxProtocol, message: Repair) -> FixIt {
    let end =
      node.nextToken(viewMode: .sourceAccurate)?.positionAfterSkippingLeadingTrivia
      ?? node.endPosition
    return FixIt(
      message: message,
      changes: [
        .replaceText(
          range: node.positionAfterSkippingLeadingTrivia..<end, with: "", in: Syntax(node))
      ])
  }

  /// Writes `var a, b: Int` as one declaration per line, with the attributes and modifiers of the
  /// original on each.
  static func separateBindings(
    of variable: VariableDeclSyntax, in member: MemberBlockItemSyntax
  ) -> FixIt {
    // In `var a, b: Int` the annotation holds for `a` as well.
    var type: TypeAnnotationSyntax?
    var declarations: [String] = []
    for binding in variable.bindings.reversed() {
      type = binding.typeAnnotation ?? (binding.initializer == nil ? type : nil)
      let single = binding.trimmed.with(\.trailingComma, nil).with(\.typeAnnotation, type)
      declarations.insert(
        variable.trimmed.with(\.bindings, [single]).trimmedDescription, at: 0)
    }
    return .replaceText(
      of: member, with: declarations.joined(separator: "\n" + (member.indentation ?? "")),
      message: .separateBindings)
  }
}
