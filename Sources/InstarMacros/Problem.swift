import SwiftDiagnostics
import SwiftSyntax

/// An error or a warning of the macros. Each message says what to write instead.
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
  /// Code that SwiftData compiles and ignores gets a warning, because it must compile here too.
  var severity: DiagnosticSeverity {
    switch self {
    case .markerOnComputedProperty, .markerOnLazyProperty, .markerOnOtherDeclaration(.transient),
      .markerOnStaticProperty, .observedProperty:
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
      from a store, and Swift 6 mode allows no macro on a 'let'; write 'private(set) var' to keep others from \
      changing it.
      """
    case .constraintOfOtherModel(let macro, let named, let model):
      """
      '#\(macro)<\(named)>' has no effect in model '\(model)', because its key paths belong to another \
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
      "'#\(macro)' needs the name of its model to give its key paths a type; write '#\(macro)<\(model)>'."
    case .deleteRuleAsOption(let rule):
      "'.\(rule)' is a delete rule, not an option; write 'deleteRule: .\(rule)'."
    case .genericModel(let name):
      """
      Model '\(name)' cannot be generic, because each entity of a schema is one concrete type; \
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
    case .markerOnOtherDeclaration(.transient):
      "'@Transient' has no effect here, because only stored properties are persisted; remove '@Transient'."
    case .markerOnOtherDeclaration(let kind):
      "'@\(kind.rawValue)' can only be applied to a stored property of a class marked '@Model'."
    case .markerOnStaticProperty(let kind, let property):
      """
      '@\(kind.rawValue)' has no effect on '\(property)', because a static property is not part of \
      a row; remove '@\(kind.rawValue)', or make '\(property)' an instance property.
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
      Model '\(name)' needs an initializer of its own, because '@Model' adds one and Swift then does not inherit \
      the initializers of '\(superclass)'; write one that sets its properties and calls 'super.init'.
      """
    case .missingType(let property):
      "'\(property)' needs a type or an initial value; write 'var \(property): Type'."
    case .modelOnOtherDeclaration:
      "'@Model' can only be applied to a class; write it before 'final class'."
    case .notAClass(let kind, let name):
      """
      '@Model' cannot be applied to \(kind) '\(name)', because a row is one object that all references \
      to it share; write 'final class \(name)'.
      """
    case .notAnActor:
      """
      '@ModelActor' can only be applied to an actor, because only one thread at a time can use a context.
      """
    case .observedProperty(let property):
      """
      Swift never calls the observers of '\(property)', because '@Model' replaces its accessors; \
      mark it '@Transient', or set it through a method that does what the observer does.
      """
    case .overriddenProperty(let property):
      """
      '\(property)' cannot override a property of the superclass, because the row has one value for both; \
      remove it, and set the inherited property in an initializer.
      """
    case .pluginNotAtFileScope:
      "'#InstarPlugin' declares a C entry point; write it at file scope, outside of any type."
    case .pluginPlanNamedTwice(let name):
      "'#InstarPlugin' names plan '\(name)' twice; name each plan once."
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
      "Each property of a model needs its own 'var'; write one declaration for each property."
    case .tableOutsideModel:
      "'@Table' has an effect only on a class marked '@Model'; mark the class, or remove '@Table'."
    case .transientWithMarker(let kind):
      """
      '@\(kind.rawValue)' has no effect on a '@Transient' property, because it is not stored; \
      remove one of the two.
      """
    case .transientWithoutValue(let property):
      """
      '@Transient' property '\(property)' needs an initial value, because Instar calls no initializer \
      of the class when it reads a model from a store; add an initial value, or make the property optional.
      """
    case .tuplePattern:
      """
      A tuple pattern cannot declare properties of a model; write a 'var' with a name and a type for each one.
      """
    case .unknownOption(let kind, let option, let known):
      """
      '@\(kind.rawValue)' has no option '.\(option)'; its options are \
      \(known.map { "'.\($0)'" }.joined(separator: ", ")).
      """
    case .weakProperty(let property, let modifier):
      """
      '\(property)' cannot be '\(modifier)', because it is a relationship and the store keeps the \
      related model; remove '\(modifier)', or mark the property '@Transient'.
      """
    }
  }
}

/// A fix-it, with the text that an editor shows for it.
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
    case .makeActor: "replace with 'actor'"
    case .makeFinalClass: "replace with 'final class'"
    case .nameModel(let name): "name '\(name)'"
    case .removeMarker(let kind): "remove '@\(kind.rawValue)'"
    case .removeModifier(let modifier): "remove '\(modifier)'"
    case .replaceLetByVar: "replace 'let' with 'var'"
    case .replaceOption(let name): "replace with '.\(name)'"
    case .separateBindings: "declare each property with its own 'var'"
    case .writeDeleteRule(let rule): "write 'deleteRule: .\(rule)'"
    }
  }
}

/// A placeholder that an editor offers to fill in. It does not compile.
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

  /// Inserts `text` directly after `node`.
  static func insert(
    _ text: String, after node: some SyntaxProtocol, message: Repair
  ) -> FixIt {
    let end = node.endPositionBeforeTrailingTrivia
    return FixIt(
      message: message, changes: [.replaceText(range: end..<end, with: text, in: Syntax(node))])
  }

  /// Removes `node` and the spaces after it, up to the next token.
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
    // In `var a, b: Int` the annotation applies to `a` as well.
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
