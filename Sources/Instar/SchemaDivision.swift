import InstarSchema
internal import InstarModel

/// Which models of a container are in the store of which of its configurations.
///
/// A configuration has the models of its schema, and those that are related to them by relationships and inheritance,
/// which cannot cross stores. One without a schema has all models that no other one has.
struct SchemaDivision {
  /// One for each configuration, in the order in which the stores are written.
  let parts: [ModelContainer.Part]

  /// - Throws: `duplicateConfiguration` where two configurations have one name or one file, or both have a model;
  ///   `configurationSchemaNotFoundInContainerSchema` where a model is left out, a configuration has none, or models of
  ///   two stores are related.
  init(of schema: Schema, among configurations: [ModelConfiguration]) throws {
    let configurations = configurations.sorted(by: ModelConfiguration.isWrittenFirst)
    try Self.requireDifferent(configurations)
    if let problem = schema.modelProblems().first { throw SwiftDataError.opening(problem) }
    var owners = try Self.namedOwners(in: configurations)
    try Self.spread(&owners, over: schema, configurations)
    let others = configurations.indices.filter { configurations[$0].schema == nil }
    guard others.count < 2 else {
      throw Self.duplicate(
        "neither \(Self.title(configurations[others[0]])) nor \(Self.title(configurations[others[1]])) has a schema",
        next: "give at least one of them a schema")
    }
    for entity in schema.entities where owners[entity.name] == nil {
      guard let rest = others.first else {
        throw Self.misfit(
          "\(entity.name) is a model of the container, but none of its configurations has it: "
            + configurations.map(Self.models).joined(separator: "; "),
          next:
            "add \(entity.name).self to the schema of one of them, or give a configuration without a schema"
        )
      }
      owners[entity.name] = rest
    }
    parts = configurations.enumerated().map { index, configuration in
      ModelContainer.Part(configuration, schema.part { owners[$0] == index })
    }
    if let empty = parts.first(where: { $0.schema.entities.isEmpty }) {
      throw Self.misfit(
        "no model is left for \(Self.title(empty.configuration)): the other configurations have all of them",
        next: "remove this configuration, or give it a schema")
    }
  }

  // MARK: Checks

  private static func requireDifferent(_ configurations: [ModelConfiguration]) throws {
    for (index, second) in configurations.enumerated() {
      for first in configurations[..<index] {
        if first == second {
          throw duplicate("\(title(first)) was given twice", next: "pass it once")
        }
        if first.isNamed, second.isNamed, first.name == second.name {
          throw duplicate(
            "two configurations have the name '\(first.name)': \(first.place) and \(second.place)",
            next: "give each its own name")
        }
        if !first.isStoredInMemoryOnly, !second.isStoredInMemoryOnly,
          file(of: first) == file(of: second)
        {
          throw duplicate(
            "two configurations have the file \(first.place): \(models(first)); \(models(second))",
            next: "give each its own url, or make them one configuration")
        }
      }
    }
  }

  /// By a path without symbolic links. The store itself may be missing.
  private static func file(of configuration: ModelConfiguration) -> String {
    let url = configuration.url.standardizedFileURL
    let folder = url.deletingLastPathComponent().path
    return RealPath.of(url.path) ?? "\(RealPath.of(folder) ?? folder)/\(url.lastPathComponent)"
  }

  /// The configuration of each model that the schema of one names.
  private static func namedOwners(
    in configurations: [ModelConfiguration]
  ) throws -> [String: Int] {
    var owners: [String: Int] = [:]
    for (index, configuration) in configurations.enumerated() {
      for entity in configuration.schema?.entities ?? [] {
        if let other = owners.updateValue(index, forKey: entity.name) {
          throw duplicate(
            "\(entity.name) is in the schemas of two configurations, \(title(configurations[other])) and \(title(configuration))",
            next: "leave it in one of them: a model is in one store")
        }
      }
    }
    return owners
  }

  /// Gives models that no schema names to the configuration that has those they are related to.
  private static func spread(
    _ owners: inout [String: Int], over schema: Schema, _ configurations: [ModelConfiguration]
  ) throws {
    var ties: [String: [(other: String, words: String)]] = [:]
    func tie(_ left: String, _ right: String, _ words: String) {
      ties[left, default: []].append((right, words))
      ties[right, default: []].append((left, words))
    }
    for entity in schema.entities {
      if let above = entity.superentityName {
        tie(entity.name, above, "\(entity.name) inherits from \(above)")
      }
      for relationship in entity.relationships {
        tie(
          entity.name, relationship.destination,
          "\(entity.name).\(relationship.name) refers to \(relationship.destination)")
      }
    }
    var waiting = owners.keys.sorted()
    while let name = waiting.popLast() {
      guard let owner = owners[name] else { continue }
      for tie in ties[name] ?? [] {
        guard let other = owners[tie.other] else {
          owners[tie.other] = owner
          waiting.append(tie.other)
          continue
        }
        guard other != owner else { continue }
        throw misfit(
          "\(tie.words), but \(name) is in \(title(configurations[owner])), and \(tie.other) in \(title(configurations[other])): a relationship cannot cross stores",
          next: "keep both in one store, or the other's identifier in an attribute")
      }
    }
  }

  // MARK: Words

  private static func title(_ configuration: ModelConfiguration) -> String {
    configuration.isNamed && !configuration.isStoredInMemoryOnly
      ? "'\(configuration.name)' (\(configuration.place))" : configuration.place
  }

  /// "'users' ('/srv/users.store') has User, Post".
  private static func models(_ configuration: ModelConfiguration) -> String {
    let names = configuration.schema?.entities.map(\.name).joined(separator: ", ")
    return "\(title(configuration)) has \(names ?? "all other models")"
  }

  private static func duplicate(_ cause: String, next: String) -> SwiftDataError {
    SwiftDataError.duplicate(
      InstarError(
        .invalidModel, "cannot open a container", cause: cause, state: "unchanged", next: next))
  }

  private static func misfit(_ cause: String, next: String) -> SwiftDataError {
    SwiftDataError.configurationSchema(
      InstarError(
        .invalidModel, "cannot open a container", cause: cause, state: "unchanged", next: next))
  }
}
