import Foundation

/// Explains the errors and warnings of Swift 6's concurrency rules that plans run into, and how to fix them.
struct ConcurrencyMessages {
  private struct Rule {
    /// A part of the compiler's message.
    var patterns: [String]
    var meaning: String
    var fix: String
  }

  private static let rules = [
    Rule(
      patterns: ["is not concurrency-safe because it is nonisolated global shared mutable state"],
      meaning: "any thread can change a static or global 'var'",
      fix: "write 'static let', or a computed property: "
        + "static var versionIdentifier: Schema.Version { Schema.Version(1, 0, 0) }"),
    Rule(
      patterns: ["is not concurrency-safe because non-'Sendable' type"],
      meaning: "a static or global 'let' holds a value that is not Sendable",
      fix: "write a computed property (static var name: Type { … }), declare the type Sendable, "
        + "or write 'nonisolated(unsafe) static let' if nothing changes the value"),
    Rule(
      patterns: ["captured var", "in a '@Sendable' closure", "in a `@Sendable` closure"],
      meaning: "the closure of a stage uses a variable or an object from outside",
      fix: "create it in the closure, capture a 'let' of a Sendable type, or pass values from "
        + "willMigrate to didMigrate in context.scratchpad"),
    Rule(
      patterns: ["of 'Sendable'-conforming class"],
      meaning: "a model is declared Sendable, but its properties can change",
      fix: "remove Sendable, and pass the model's persistentModelID or values of it; "
        + "or write '@unchecked Sendable' if only one thread uses each model"),
    Rule(
      patterns: ["main actor-isolated"],
      meaning: "a plan does not run on the main actor, but this code belongs to it",
      fix: "mark the plan, the model or the function 'nonisolated', or move what the stage needs "
        + "out of types that are marked '@MainActor'"),
  ]

  /// The explanations, each below the places of its errors; empty without such errors.
  let lines: [ConsoleLine]

  init(compilerOutput: String) {
    var places = Self.rules.map { _ in [String]() }
    for line in compilerOutput.replacing(/\u{1B}\[[0-9;]*m/, with: "").split(separator: "\n") {
      guard let match = line.wholeMatch(of: /(.+):([0-9]+):[0-9]+: (?:error|warning): (.*)/),
        let rule = Self.rules.firstIndex(where: { $0.patterns.contains(where: match.3.contains) })
      else { continue }
      let place = "\(URL(fileURLWithPath: String(match.1)).lastPathComponent):\(match.2)"
      if !places[rule].contains(place) { places[rule].append(place) }
    }
    lines = zip(Self.rules, places).flatMap { rule, places -> [ConsoleLine] in
      guard !places.isEmpty else { return [] }
      let more = places.count > 3 ? " and \(places.count - 3) more" : ""
      return [
        "\(places.prefix(3).joined(separator: ", "))\(more): \(rule.meaning)",
        "  fix: \(rule.fix)",
      ]
    }
  }
}
