public import InstarSchema

extension Schema {
  /// Creates the schema of models, and of all models that their relationships and superclasses reference.
  public init(_ types: [any PersistentModel.Type], version: Version = Version(1, 0, 0)) {
    self.init(types, reached: Self.reached(from: types), version: version)
  }

  private init(
    _ named: [any PersistentModel.Type], reached: [any PersistentModel.Type], version: Version
  ) {
    let types = named + reached
    self.init(
      entities: types.map { $0._modelDescriptor.entity }, version: version,
      modelTypes: ModelTypes(
        Dictionary(
          types.map { ($0._modelDescriptor.name, $0 as any Any.Type) },
          uniquingKeysWith: { first, _ in first }),
        reached: Set(reached.map { $0._modelDescriptor.name }),
        all: types))
  }

  /// Creates the same schema, with the models as separate arguments.
  public init(_ types: any PersistentModel.Type..., version: Version = Version(1, 0, 0)) {
    self.init(types, version: version)
  }

  /// Creates the schema of one version of an app's models.
  ///
  /// A version names all of its models, because a referenced model that it does not name may be that of another
  /// version. Opening a container and loading a plan report a missing model by name.
  public init(versionedSchema: any VersionedSchema.Type) {
    self.init(versionedSchema.models, reached: [], version: versionedSchema.versionIdentifier)
  }

  /// Returns the types that others reference, directly or not, without the given ones.
  private static func reached(
    from types: [any PersistentModel.Type]
  ) -> [any PersistentModel.Type] {
    var all = types
    var seen = Set(types.map { ObjectIdentifier($0) })
    var next = 0
    while next < all.count {
      for type in all[next]._modelDescriptor.neighbours
      where seen.insert(ObjectIdentifier(type)).inserted {
        all.append(type)
      }
      next += 1
    }
    return Array(all.dropFirst(types.count))
  }

  /// The schema without the models that were only referenced.
  var withNamedModelsOnly: Schema {
    guard !modelTypes.reached.isEmpty else { return self }
    return Schema(
      entities: entities.filter { !modelTypes.reached.contains($0.name) }, version: version,
      modelTypes: modelTypes)
  }

  /// Returns the entity of a model type, or `nil` if the schema does not have the type.
  public func entity<Model: PersistentModel>(for type: Model.Type) -> Entity? {
    let name = type._modelDescriptor.name
    guard modelTypes.byEntityName[name].map({ $0 == type }) ?? true else { return nil }
    return entity(named: name)
  }

  var models: [any PersistentModel.Type] {
    entities.compactMap { modelTypes.byEntityName[$0.name] as? any PersistentModel.Type }
  }
}

extension Schema.Entity {
  init(_ descriptor: ModelDescriptor) {
    self.init(
      name: descriptor.name, originalName: descriptor.originalName,
      superentityName: descriptor.superclass?.name)
    table = descriptor.table
    for slot in descriptor.ownSlots {
      let property = descriptor.properties[slot]
      switch property.kind {
      case .attribute(let kind):
        if let leaves = kind.leaves {
          for leaf in leaves {
            // A column is NULL if the value is another case or `nil`.
            var column = Schema.Attribute(
              name: "\(property.name).\(leaf.name)",
              originalName: "\(kind.metadata.originalName ?? property.name).\(leaf.name)",
              type: leaf.type, isOptional: true, options: kind.metadata.options,
              hashModifier: kind.metadata.hashModifier)
            column.swiftType = Schema.SwiftType(leaf.valueType)
            column.compositeType = Schema.SwiftType(kind.valueType, isOptional: kind.isOptional)
            attributes.append(column)
          }
          continue
        }
        var attribute = Schema.Attribute(
          name: property.name, originalName: kind.metadata.originalName, type: kind.type,
          isOptional: kind.isOptional, options: kind.metadata.options,
          defaultValue: kind.defaultSlot()?.attributeValue,
          hashModifier: kind.metadata.hashModifier)
        attribute.swiftType = Schema.SwiftType(kind.valueType)
        attribute.column = property.column
        if table != nil, !kind.hasConstantDefault {
          // `UUID()` cannot be the default of a column, because each row would get the same one.
          attribute.column = attribute.column ?? Schema.Column()
          attribute.column?.hasConstantDefault = false
        }
        attributes.append(attribute)
      case .relationship(let kind):
        let inverse = descriptor.inverse(ofSlot: slot)
        var relationship = Schema.Relationship(
          name: property.name, originalName: kind.metadata.originalName,
          destination: kind.destination._modelDescriptor.name,
          inverseName: inverse.map { $0.descriptor.properties[$0.slot].name },
          deleteRule: kind.metadata.deleteRule,
          minimumModelCount: kind.metadata.minimumModelCount,
          maximumModelCount: kind.isToOne ? 1 : kind.metadata.maximumModelCount,
          isOptional: kind.isOptional, isToOneRelationship: kind.isToOne,
          // The inverse already shows it.
          options: kind.metadata.options.filter { $0 != .ownInverse },
          hashModifier: kind.metadata.hashModifier)
        relationship.swiftType = Schema.SwiftType(kind.valueType)
        relationship.column = property.column
        relationships.append(relationship)
      }
    }
    func names(_ groups: [[Int]]) -> [[String]] {
      groups.map { $0.map { descriptor.properties[$0].name } }
    }
    uniquenessConstraints = names(descriptor.ownUniqueSlots)
    indices = names(descriptor.indexSlots)
    fetchIndexes = descriptor.namedIndices.map { index in
      Schema.FetchIndex(
        name: index.name,
        elements: index.elements.compactMap { element in
          descriptor.slotsByKeyPath[element.property].map {
            Schema.FetchIndex.Element(
              descriptor.properties[$0].name, isAscending: element.isAscending)
          }
        }, condition: index.condition)
    }
  }
}

extension Schema {
  /// Returns the errors in the models of the schema; empty if they can be stored.
  ///
  /// Like SwiftData's, the initializers of `Schema` cannot throw. Containers and plans call this method first.
  public func modelProblems() -> [InstarError] {
    var problems: [InstarError] = []
    let types = modelTypes.all.compactMap { $0 as? any PersistentModel.Type }
    for type in types {
      let descriptor = type._modelDescriptor
      guard let first = types.first(where: { $0._modelDescriptor.name == descriptor.name }),
        first != type
      else { continue }
      let (one, other) = ModelDescriptor.names(of: first._modelDescriptor, and: descriptor)
      problems.append(
        InstarError(
          .invalidModel, "cannot use schema \(version)",
          cause: "two models are named \(descriptor.name): \(one) and \(other)",
          next: "rename one of the two classes, or leave it out of the models"))
    }
    let included = models.map { ObjectIdentifier($0) }
    for model in models {
      let descriptor = model._modelDescriptor
      problems += descriptor.constraintProblems(version)
      if let superclass = descriptor.superclass,
        !included.contains(ObjectIdentifier(superclass.type))
      {
        problems.append(
          InstarError(
            .incompleteSchema, "cannot use schema \(version)",
            cause:
              "\(descriptor.name) inherits from \(superclass.qualifiedName), which is missing from the models of \(version)",
            next: "add \(superclass.name).self to the models of version \(version)"))
      }
      for slot in descriptor.ownSlots {
        let property = descriptor.properties[slot]
        if case .attribute(let kind) = property.kind, let error = kind.defaultProblem?() {
          problems.append(
            InstarError(
              .invalidModel, "cannot use schema \(version)",
              cause:
                "the initial value of \(descriptor.name).\(property.name) cannot be stored: \((error as? InstarError)?.cause ?? "\(error)")"
            ))
        }
        guard case .relationship(let kind) = property.kind else { continue }
        let destination = kind.destination._modelDescriptor
        let path = "\(descriptor.name).\(property.name)"
        if let other = modelTypes.byEntityName[destination.name] as? any PersistentModel.Type,
          other != kind.destination
        {
          let (used, included) = ModelDescriptor.names(
            of: destination, and: other._modelDescriptor)
          problems.append(
            InstarError(
              .incompleteSchema, "cannot use schema \(version)",
              cause:
                "\(path) uses \(used), but the \(destination.name) of \(version) is \(included)",
              next: "let both name the same class, or rename one of the two classes"))
        } else if !included.contains(ObjectIdentifier(kind.destination)) {
          problems.append(
            InstarError(
              .incompleteSchema, "cannot use schema \(version)",
              cause:
                "\(destination.qualifiedName) is used by \(path), but is missing from the models of \(version)",
              next: "add \(destination.name).self to the models of version \(version)"))
        } else if let cause = descriptor.inverseProblem(ofSlot: slot) {
          problems.append(
            InstarError(
              .invalidModel, "cannot use schema \(version)", cause: cause,
              next:
                "name a relationship of \(destination.name) that references \(descriptor.name)"))
        } else if kind.metadata.options.contains(.ownInverse), destination !== descriptor {
          problems.append(
            InstarError(
              .invalidModel, "cannot use schema \(version)",
              cause: "\(path) is marked as its own inverse, but references \(destination.name)",
              next: "name its inverse: @Relationship(inverse: \\\(destination.name).…)"))
        } else if let candidate = descriptor.unpairedManyToMany(ofSlot: slot),
          path <= "\(destination.name).\(candidate)"
        {
          problems.append(
            InstarError(
              .invalidModel, "cannot use schema \(version)",
              cause:
                "\(path) and \(destination.name).\(candidate) are both arrays, and neither names the other as its inverse",
              next:
                "write @Relationship(inverse: \\\(destination.name).\(candidate)) before \(path), and nothing on the other side"
            ))
        }
      }
    }
    return problems
  }
}

extension ModelDescriptor {
  /// Returns the errors in `#Unique` and `#Index`: key paths to properties without exactly one column.
  fileprivate func constraintProblems(_ version: Schema.Version) -> [InstarError] {
    func hasColumn(_ property: Schema.PropertyMetadata) -> Bool {
      switch property.kind {
      case .attribute(let attribute): attribute.leaves == nil
      case .relationship(let relationship): relationship.isToOne
      }
    }
    func problem(_ cause: String) -> InstarError {
      InstarError(
        .invalidModel, "cannot use schema \(version)", cause: cause,
        next: "use a property with a single value, or a to-one relationship")
    }
    let indexed = indices + namedIndices.map { $0.elements.map(\.property) }
    let wanted = [("#Unique", uniqueness), ("#Index", indexed)].flatMap { macro, groups in
      groups.joined().compactMap { keyPath -> InstarError? in
        guard let slot = slotsByKeyPath[keyPath] else {
          return problem("\(macro) of \(name) names `\(keyPath)`, which is not a stored property")
        }
        return hasColumn(properties[slot])
          ? nil
          : problem(
            "\(macro) of \(name) names '\(properties[slot].name)', which does not have exactly one column"
          )
      }
    }
    let marked = properties[ownSlots].filter { $0.isUnique && !hasColumn($0) }.map {
      problem("'\($0.name)' of \(name) is unique, but does not have exactly one column")
    }
    return wanted + marked
  }
}
