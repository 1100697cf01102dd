internal import InstarChange
internal import InstarEngine
internal import InstarStore

/// What happens before a container's stores are opened: configurations and schema are checked, and the stores that are
/// behind are migrated where a plan is given.
struct ContainerOpening {
  /// The stores in the order in which they are written, each with the models that are in it.
  let parts: [ModelContainer.Part]
  /// What the stores are opened with: the plan's last schema, or, without a plan, the one asked for.
  let schema: Schema
  private let plan: PlanDefinition?

  /// - Parameters:
  ///   - schema: What the container was asked for.
  ///   - configurations: none stand for the default place.
  /// - Throws: why the plan is none for the schema, or the schema cannot be divided among the configurations. Nothing
  ///   is touched.
  init(
    _ schema: Schema, plan: (any SchemaMigrationPlan.Type)?, configurations: [ModelConfiguration]
  ) throws {
    let configurations =
      configurations.isEmpty ? [ModelConfiguration(schema: schema)] : configurations
    do {
      let definition = try plan.map { try PlanDefinition($0) }
      self.schema = try definition.map { try Self.lastSchema(of: $0, for: schema) } ?? schema
      self.plan = definition
    } catch {
      throw Self.failure(error, configurations, plan: plan.map { "\($0)" } ?? "")
    }
    for configuration in configurations { try Self.check(configuration, of: self.schema) }
    parts =
      configurations.count == 1
      ? [ModelContainer.Part(configurations[0], self.schema)]
      : try SchemaDivision(of: self.schema, among: configurations).parts
  }

  private static func check(_ configuration: ModelConfiguration, of schema: Schema) throws {
    let what = "cannot open a container"
    if let own = configuration.schema,
      let stranger = own.entities.first(where: { schema.entity(named: $0.name) == nil })
    {
      throw SwiftDataError.configurationSchema(
        InstarError(
          .invalidModel, what,
          cause: "\(stranger.name) is in the configuration's schema, but not in the container's",
          next: "give both the same schema"))
    }
    guard !configuration.isStoredInMemoryOnly else { return }
    let name = configuration.url.lastPathComponent
    guard name.utf8.count <= 255, !configuration.url.path.utf8.contains(0) else {
      throw SwiftDataError.invalidFileName(
        InstarError(
          .unsafePath, what,
          cause: name.utf8.count > 255
            ? "the name of its file has \(name.utf8.count) bytes" : "its path holds a NUL",
          next: "choose another name"), isTooLong: name.utf8.count > 255)
    }
  }

  /// Migrates the stores that are behind, where a plan is given.
  func migrate() throws {
    guard let plan else { return }
    do {
      try ContainerMigration(plan, of: parts).run()
    } catch {
      throw Self.failure(error, parts.map(\.configuration), plan: plan.name)
    }
  }

  private static func failure(
    _ error: any Error, _ configurations: [ModelConfiguration], plan: String
  ) -> SwiftDataError {
    let places = configurations.map(\.place).joined(separator: ", ")
    let what = "cannot open \(places) by plan \(plan)"
    var known = InstarError(error, what: what)
    known.what = known.what == what ? what : "\(what): \(known.what)"
    let store = configurations.count == 1 ? configurations[0].url.path : nil
    return SwiftDataError.opening(known.about(store: store, state: "unchanged"))
  }

  // MARK: The schema

  /// The plan's last schema, if that is what the container was asked for.
  ///
  /// Models that are reached through relationships need not have been named.
  private static func lastSchema(
    of plan: PlanDefinition, for schema: Schema
  ) throws(InstarError) -> Schema {
    guard let last = plan.versions.last?.schema else {
      throw InstarError(
        .invalidPlan, "cannot use plan \(plan.name)", cause: "the plan has no schemas",
        next: "list the versions of the models in the plan's 'schemas'")
    }
    func refuse(_ cause: String) -> InstarError {
      InstarError(
        .invalidPlan, "cannot use plan \(plan.name) with this schema", cause: cause,
        next: "open the container with the models of \(last.version)")
    }
    // A referenced class may be another version's: in the plan's schema the class of this version takes its place.
    for entity in schema.entities where !schema.modelTypes.reached.contains(entity.name) {
      guard let planned = last.modelTypes.byEntityName[entity.name] else {
        throw refuse(
          "\(entity.name) is not among the models of \(last.version), the last version of \(plan.name)"
        )
      }
      if let given = schema.modelTypes.byEntityName[entity.name], given != planned {
        throw refuse(
          "\(name(of: given)) was given, but the last version of \(plan.name), \(last.version), has \(name(of: planned))"
        )
      }
    }
    let reached = entities(reachedFrom: schema.entities.map(\.name), in: last)
    if let missing = last.entities.first(where: { !reached.contains($0.name) }) {
      throw refuse(
        "\(missing.name) is a model of \(last.version), the last version of \(plan.name), but was not given"
      )
    }
    // A schema created from types alone has the version 1.0.0.
    guard schema.version == last.version || schema.version == Schema.Version(1, 0, 0) else {
      throw refuse(
        "the schema's version is \(schema.version), but \(plan.name) ends at \(last.version)")
    }
    return last
  }

  /// "NotesSchemaV1.Note".
  private static func name(of type: any Any.Type) -> String {
    let reflected = String(reflecting: type)
    return reflected.split(separator: ".", maxSplits: 1).last.map(String.init) ?? reflected
  }

  private static func entities(
    reachedFrom names: [String], in schema: Schema
  ) -> Set<String> {
    let byName = schema.entitiesByName
    var reached = Set(names)
    var waiting = names
    while let name = waiting.popLast() {
      for relationship in byName[name]?.relationships ?? []
      where reached.insert(relationship.destination).inserted {
        waiting.append(relationship.destination)
      }
    }
    return reached
  }
}
