public import InstarSchema

extension Schema {
  /// Creates the schema of models, and of all models that their relationships and superclasses reference.
  public init(_ types: [any PersistentModel.Type], version: Version = Version(1, 0, 0)) {
    self.init(types, reached: Self.reached(from: types), version: version, byName: false)
  }

  /// - Parameter byName: Whether a relationship references the class of its entity in this schema, whatever class it is
  ///   declared with.
  private init(
    _ named: [any PersistentModel.Type], reached: [any PersistentModel.Type], version: Version,
    byName: Bool
  ) {
    let types = named + reached
    let models = ModelSet(byName ? types : [])
    self.init(
      entities: models.entities(of: types), version: version,
      modelTypes: ModelTypes(
        Dictionary(firstOf: types.map { ($0._modelDescriptor.name, $0 as any Any.Type) }),
        reached: Set(reached.map { $0._modelDescriptor.name }),
        all: types, isVersioned: byName))
  }

  /// Creates the same schema, with the models as separate arguments.
  public init(_ types: any PersistentModel.Type..., version: Version = Version(1, 0, 0)) {
    self.init(types, version: version)
  }

  /// Creates the schema of one version of an app's models, and of all models that their relationships and superclasses
  /// reference. As in SwiftData, a version may list only its root models.
  ///
  /// If the version has another class of a referenced entity, that class takes its place: two versions may share a
  /// model whose relationships are declared with the classes of one of them.
  public init(versionedSchema: any VersionedSchema.Type) {
    let named = versionedSchema.models
    self.init(
      named, reached: Self.reachedByName(from: named), version: versionedSchema.versionIdentifier,
      byName: true)
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

  /// Returns the same with one type for each entity: first those beside the given types, as they are of one version.
  static func reachedByName(
    from types: [any PersistentModel.Type]
  ) -> [any PersistentModel.Type] {
    let scopes = Set(types.map { $0._modelDescriptor.scope })
    var all = types
    var names = Set(types.map { $0._modelDescriptor.name })
    var next = 0
    var others: [any PersistentModel.Type] = []
    while true {
      while next < all.count {
        for type in all[next]._modelDescriptor.neighbours {
          let descriptor = type._modelDescriptor
          if !scopes.contains(descriptor.scope) {
            others.append(type)
          } else if names.insert(descriptor.name).inserted {
            all.append(type)
          }
        }
        next += 1
      }
      guard let other = others.firstIndex(where: { !names.contains($0._modelDescriptor.name) })
      else { return Array(all.dropFirst(types.count)) }
      names.insert(others[other]._modelDescriptor.name)
      all.append(others[other])
    }
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

  /// By which the relationships of the schema find their destinations.
  var modelSet: ModelSet { ModelSet(modelTypes.isVersioned ? models : []) }

  /// The relationships that are declared with another version's class of their destination, one sentence each.
  package var replacedClasses: [String] {
    modelSet.replacements.compactMap { descriptor, slot -> String? in
      let property = descriptor.properties[slot]
      guard case .relationship(let kind) = property.kind else { return nil }
      let (declared, used) = ModelDescriptor.names(
        of: kind.destination._modelDescriptor, and: modelSet.destination(of: kind))
      return
        "\(descriptor.name).\(property.name) is declared with \(declared); in \(version) it references \(used)"
    }
  }
}

extension ModelSet {
  /// Returns the entities of model types, with the inverses that they have in this set.
  fileprivate func entities(of types: [any PersistentModel.Type]) -> [Schema.Entity] {
    let inverses = inverses
    return types.map { type in
      let descriptor = type._modelDescriptor
      var entity = descriptor.entity
      guard let own = inverses[ObjectIdentifier(descriptor)] else { return entity }
      for index in entity.relationships.indices {
        let name = entity.relationships[index].name
        let inverse = descriptor.properties.firstIndex { $0.name == name }.flatMap { own[$0] }
        entity.relationships[index].inverseName = inverse?.property.name
        entity.relationships[index].keyPaths.inverse = inverse?.property.keyPath
      }
      return entity
    }
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
        attributes += Self.attributes(of: kind, property, inTable: table != nil)
      case .relationship(let kind):
        relationships.append(
          Self.relationship(of: kind, property, inverse: descriptor.inverse(ofSlot: slot)))
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

  /// Returns the attributes of a property: one for each column of a composite.
  private static func attributes(
    of kind: Schema.PropertyMetadata.AttributeKind, _ property: Schema.PropertyMetadata,
    inTable: Bool
  ) -> [Schema.Attribute] {
    if let leaves = kind.leaves {
      let initialSlot = kind.defaultSlot()
      var initialValues: [Slot] = []
      if case .composite(let slots) = initialSlot { initialValues = slots }
      return leaves.enumerated().map { index, leaf in
        // A column is NULL if the value is another case or `nil`.
        var column = Schema.Attribute(
          name: "\(property.name).\(leaf.name)",
          originalName: "\(kind.metadata.originalName ?? property.name).\(leaf.name)",
          type: leaf.type, isOptional: true, options: kind.metadata.options,
          hashModifier: kind.metadata.hashModifier)
        column.swiftType = Schema.SwiftType(leaf.valueType)
        column.compositeType = Schema.SwiftType(kind.valueType)
        column.declaration.isEnumeration = Schema.Attribute.isEnumeration(kind.valueType)
        column.declaration.isRequiredComposite = !kind.isOptional
        column.declaration.hasInitialValue = initialSlot != nil
        column.declaration.initialValue =
          initialValues.indices.contains(index) ? initialValues[index].attributeValue : nil
        column.declaration.isRequiredField = !(leaf.valueType is any OptionalType.Type)
        return column
      }
    }
    var attribute = Schema.Attribute(property.name, kind)
    attribute.column = property.column
    if inTable, !kind.hasConstantDefault {
      // `UUID()` cannot be the default of a column, because each row would get the same one.
      attribute.column = attribute.column ?? Schema.Column()
      attribute.column?.hasConstantDefault = false
    }
    return [attribute]
  }

  private static func relationship(
    of kind: Schema.PropertyMetadata.RelationshipKind, _ property: Schema.PropertyMetadata,
    inverse: ModelDescriptor.Inverse?
  ) -> Schema.Relationship {
    var relationship = Schema.Relationship(
      name: property.name, originalName: kind.metadata.originalName,
      destination: kind.destination._modelDescriptor.name,
      inverseName: inverse?.property.name,
      deleteRule: kind.metadata.deleteRule,
      minimumModelCount: kind.metadata.minimumModelCount,
      maximumModelCount: kind.isToOne ? 1 : kind.metadata.maximumModelCount,
      isOptional: kind.isOptional, isToOneRelationship: kind.isToOne,
      // The inverse already shows it.
      options: kind.metadata.options.filter { $0 != .ownInverse },
      hashModifier: kind.metadata.hashModifier)
    relationship.swiftType = Schema.SwiftType(kind.valueType)
    relationship.keyPaths = Schema.Relationship.KeyPaths(
      property: property.keyPath, inverse: inverse?.property.keyPath)
    relationship.column = property.column
    return relationship
  }
}

extension Schema {
  /// Returns the errors in the models of the schema; empty if they can be stored.
  ///
  /// Like SwiftData's, the initializers of `Schema` cannot throw. Containers and plans call this method first.
  public func modelProblems() -> [InstarError] {
    let included = Set(models.map { ObjectIdentifier($0) })
    let set = modelSet
    var problems = sharedNameProblems()
    for model in models {
      let descriptor = model._modelDescriptor
      problems += descriptor.constraintProblems(version)
      if let problem = superclassProblem(of: descriptor, included) { problems.append(problem) }
      for slot in descriptor.ownSlots {
        if let problem = typeProblem(of: descriptor, slot) { problems.append(problem) }
        if let problem = initialValueProblem(of: descriptor, slot) { problems.append(problem) }
        if let problem = relationshipProblem(of: descriptor, slot, included, in: set) {
          problems.append(problem)
        }
      }
    }
    return problems
  }

  private func problem(
    _ cause: String, code: InstarError.Code = .invalidModel, next: String? = nil
  ) -> InstarError {
    InstarError(code, "cannot use schema \(version)", cause: cause, next: next)
  }

  private func sharedNameProblems() -> [InstarError] {
    let types = modelTypes.all.compactMap { $0 as? any PersistentModel.Type }
    return types.compactMap { type in
      let descriptor = type._modelDescriptor
      guard let first = types.first(where: { $0._modelDescriptor.name == descriptor.name }),
        first != type
      else { return nil }
      let (one, other) = ModelDescriptor.names(of: first._modelDescriptor, and: descriptor)
      return problem(
        "two models are named \(descriptor.name): \(one) and \(other)",
        next: "rename one of the two classes, or leave it out of the models")
    }
  }

  private func superclassProblem(
    of descriptor: ModelDescriptor, _ included: Set<ObjectIdentifier>
  ) -> InstarError? {
    guard let superclass = descriptor.superclass,
      !included.contains(ObjectIdentifier(superclass.type))
    else { return nil }
    return problem(
      "\(descriptor.name) inherits from \(superclass.qualifiedName), which is missing from the models of \(version)",
      code: .incompleteSchema,
      next: "add \(superclass.name).self to the models of version \(version)")
  }

  private func typeProblem(of descriptor: ModelDescriptor, _ slot: Int) -> InstarError? {
    let property = descriptor.properties[slot]
    guard case .attribute(let kind) = property.kind, let error = kind.typeProblem?() else {
      return nil
    }
    return problem(
      "\(descriptor.name).\(property.name) cannot be stored: \(error.cause)", next: error.next)
  }

  private func initialValueProblem(of descriptor: ModelDescriptor, _ slot: Int) -> InstarError? {
    let property = descriptor.properties[slot]
    guard case .attribute(let kind) = property.kind, let error = kind.defaultProblem?() else {
      return nil
    }
    let cause = (error as? InstarError)?.cause ?? "\(error)"
    return problem(
      "the initial value of \(descriptor.name).\(property.name) cannot be stored: \(cause)")
  }

  private func relationshipProblem(
    of descriptor: ModelDescriptor, _ slot: Int, _ included: Set<ObjectIdentifier>,
    in set: ModelSet
  ) -> InstarError? {
    let property = descriptor.properties[slot]
    guard case .relationship(let kind) = property.kind else { return nil }
    let destination = set.destination(of: kind)
    let path = "\(descriptor.name).\(property.name)"
    if let other = modelTypes.byEntityName[destination.name] as? any PersistentModel.Type,
      other != destination.type
    {
      let (used, included) = ModelDescriptor.names(of: destination, and: other._modelDescriptor)
      return problem(
        "\(path) uses \(used), but the \(destination.name) of \(version) is \(included)",
        code: .incompleteSchema,
        next: "let both name the same class, or rename one of the two classes")
    }
    guard included.contains(ObjectIdentifier(destination.type)) else {
      return problem(
        "\(destination.qualifiedName) is used by \(path), but is missing from the models of \(version)",
        code: .incompleteSchema,
        next: "add \(destination.name).self to the models of version \(version)")
    }
    if let cause = descriptor.inverseProblem(ofSlot: slot, in: set) {
      return problem(
        cause, next: "name a relationship of \(destination.name) that references \(descriptor.name)"
      )
    }
    if kind.metadata.options.contains(.ownInverse), destination !== descriptor {
      return problem(
        "\(path) is marked as its own inverse, but references \(destination.name)",
        next: "name its inverse: @Relationship(inverse: \\\(destination.name).…)")
    }
    return nil
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
