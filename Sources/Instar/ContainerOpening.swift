internal import InstarEngine
internal import InstarLinux
internal import InstarStore

/// What happens before a container's store is opened: configuration and schema are checked, and the store is migrated where
/// a plan is given and it is behind.
struct ContainerOpening {
  let configuration: ModelConfiguration
  /// The schema that the container was asked for.
  let schema: Schema

  /// The one configuration of a container.
  static func configuration(
    of configurations: [ModelConfiguration], schema: Schema
  ) throws -> ModelConfiguration {
    let what = "cannot open a container"
    guard configurations.count <= 1 else {
      throw SwiftDataError.duplicate(
        InstarError(
          .unsupported, what,
          cause: "\(configurations.count) configurations were given; a container has one store",
          next: "make a container for each store"))
    }
    let configuration = configurations.first ?? ModelConfiguration(schema: schema)
    if let own = configuration.schema,
      let stranger = own.entities.first(where: { schema.entity(named: $0.name) == nil })
    {
      throw SwiftDataError.configurationSchema(
        InstarError(
          .invalidModel, what,
          cause: "\(stranger.name) is in the configuration's schema, but not in the container's",
          next: "give both the same schema"))
    }
    if !configuration.isStoredInMemoryOnly {
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
    return configuration
  }

  /// Migrates the store where a plan is given and the store is behind.
  ///
  /// - Returns: The schema to open the store with: the plan's last one, or, without a plan, the one asked for.
  func migrate(by plan: (any SchemaMigrationPlan.Type)?) throws -> Schema {
    guard let plan else { return schema }
    do {
      let definition = try PlanDefinition(plan)
      let last = try lastSchema(of: definition)
      if configuration.isStoredInMemoryOnly {
        try MemoryMigration(connection: configuration.memoryConnection(), plan: definition).run()
      } else if let path = try existingStore() {
        try FileMigration(
          path: path, plan: definition, isReadOnly: !configuration.allowsSave,
          stateFolder: Installation.appStateFolder
        ).run()
      }
      return last
    } catch {
      let what = "cannot open \(configuration.place) by plan \(plan)"
      var known = InstarError(error, what: what)
      known.what = known.what == what ? what : "\(what): \(known.what)"
      throw SwiftDataError.opening(known.about(store: configuration.url.path, state: "unchanged"))
    }
  }

  /// The store's file, by a path without symbolic links; `nil` where there is none, or an empty one, which a container
  /// fills.
  private func existingStore() throws(InstarError) -> String? {
    guard let real = realpath(configuration.url.path, nil) else {
      guard errno != ENOENT else { return nil }
      throw InstarError(
        .unreadableStore, "cannot find the store", cause: String(cString: strerror(errno)))
    }
    defer { free(real) }
    let path = String(cString: real)
    var status = stat()
    return stat(path, &status) == 0 && status.st_size == 0 ? nil : path
  }

  // MARK: The schema

  /// The plan's last schema, if that is what the container was asked for.
  ///
  /// Models that are reached through relationships need not have been named.
  private func lastSchema(of plan: PlanDefinition) throws(InstarError) -> Schema {
    guard let last = plan.versions.last?.schema else {
      throw InstarError(.invalidPlan, "cannot use plan \(plan.name)", cause: "it has no schemas")
    }
    func refuse(_ cause: String) -> InstarError {
      InstarError(
        .invalidPlan, "schema and plan do not belong together", cause: cause,
        next: "open the container with the models of \(last.version)")
    }
    for entity in schema.entities {
      guard let planned = last.modelTypes.byEntityName[entity.name] else {
        throw refuse(
          "\(entity.name) is not among the models of \(last.version), the last version of \(plan.name)"
        )
      }
      if let given = schema.modelTypes.byEntityName[entity.name], given != planned {
        throw refuse(
          "\(Self.name(of: given)) was given, but the last version of \(plan.name), \(last.version), has \(Self.name(of: planned))"
        )
      }
    }
    let reached = Self.entities(reachedFrom: schema.entities.map(\.name), in: last)
    if let missing = last.entities.first(where: { !reached.contains($0.name) }) {
      throw refuse(
        "\(missing.name) is a model of \(last.version), the last version of \(plan.name), but was not given"
      )
    }
    // A schema that is made of types alone has the version 1.0.0.
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
