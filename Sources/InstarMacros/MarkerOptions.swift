import SwiftDiagnostics
import SwiftSyntax

/// The options of the markers, for the error about an unknown one. The compiler only reports that `Option` has no such
/// member.
extension PropertyMarker {
  private var knownOptions: [String] {
    switch kind {
    case .attribute:
      [
        "allowsCloudEncryption", "codable", "derived", "ephemeral", "externalStorage",
        "preserveValueOnDeletion", "spotlight", "transformable", "unique",
      ]
    case .relationship: ["ordered", "ownInverse", "unique", "withoutInverse"]
    case .transient: []
    case .column:
      [
        "autoincrement", "check", "collation", "columns", "default", "encoding", "generated",
        "junction", "onDelete", "onUpdate", "primaryKey", "type",
      ]
    }
  }

  /// The values of `@Relationship(deleteRule:)`, which people often write as options.
  private static let deleteRules = ["cascade", "deny", "noAction", "nullify"]

  /// An error for each unknown option.
  var optionProblems: [Diagnostic] {
    guard let arguments = attribute.arguments?.as(LabeledExprListSyntax.self) else { return [] }
    return arguments.compactMap { argument in
      // The compiler checks expressions that are not names of options, such as variables.
      guard argument.label == nil, let member = argument.expression.optionName,
        !knownOptions.contains(member.declName.baseName.text)
      else { return nil }
      return problem(of: member)
    }
  }

  private func problem(of member: MemberAccessExprSyntax) -> Diagnostic {
    let name = member.declName.baseName.text
    let problem = Problem.unknownOption(kind, option: name, known: knownOptions)
    if kind == .relationship, Self.deleteRules.contains(name) {
      return Diagnostic(
        node: member, message: Problem.deleteRuleAsOption(rule: name),
        fixIt: .replaceText(
          of: member, with: "deleteRule: .\(name)", message: .writeDeleteRule(name)))
    }
    guard
      let nearest = knownOptions.map({ ($0, $0.editDistance(to: name)) }).min(by: { $0.1 < $1.1 }),
      nearest.1 <= max(2, name.count / 3)
    else { return Diagnostic(node: member, message: problem) }
    return Diagnostic(
      node: member, message: problem,
      fixIt: .replaceText(
        of: member.declName.baseName, with: nearest.0, message: .replaceOption(nearest.0)))
  }
}

extension ExprSyntax {
  /// `.unique` for `.unique` and for `.unique(…)`.
  fileprivate var optionName: MemberAccessExprSyntax? {
    let callee = self.as(FunctionCallExprSyntax.self)?.calledExpression ?? self
    guard let member = callee.as(MemberAccessExprSyntax.self), member.base == nil else {
      return nil
    }
    return member
  }
}

extension String {
  /// The Levenshtein distance: how many letters to insert, remove or replace to get the other name.
  fileprivate func editDistance(to other: String) -> Int {
    var row = Array(0...other.count)
    for (index, letter) in enumerated() {
      var diagonal = row[0]
      row[0] = index + 1
      for (column, otherLetter) in other.enumerated() {
        let exchange = diagonal + (letter == otherLetter ? 0 : 1)
        diagonal = row[column + 1]
        row[column + 1] = Swift.min(exchange, diagonal + 1, row[column] + 1)
      }
    }
    return row[other.count]
  }
}
