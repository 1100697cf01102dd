import InstarChange
import InstarModel
package import InstarSchema
import InstarStore

extension PlanDefinition {
  /// The plan of each store of a container, with the models of every version that are in that store.
  ///
  /// A model of an earlier version belongs to the store of the model that it became, which is found from stage to
  /// stage by names and original names. So do the models that it is related to in its version. Models that the last
  /// version no longer has belong to the first store that has their table, or else to the first store. The versions
  /// of a store begin with the first that has a model there; later ones may have none.
  ///
  /// - Parameters:
  ///   - storeNames: The names of the stores in errors.
  ///   - owners: The store of each model of the last version, as an index into `storeNames`.
  ///   - tables: The names of each store's tables, as SQL writes them. Called only where some models are not in the
  ///     last version.
  /// - Throws: `invalidPlan` where an invariant needs models of several stores, where a relationship or a superclass is
  ///   in another store than its entity, or where a
  ///   plain store would have no table in a version between others: it would be equal to an empty
  ///   database.
  package func parts(
    for storeNames: [String], owners: [String: Int],
    tables: () throws(InstarError) -> [Set<String>]
  ) throws(InstarError) -> [PlanDefinition] {
    var division = ModelDivision(self, storeNames: storeNames)
    try division.assignLastVersion(to: owners)
    if !division.unassigned.isEmpty {
      let tables = try tables()
      for node in division.unassigned {
        guard let table = table(of: node),
          let store = tables.firstIndex(where: { $0.contains(table) })
        else { continue }
        try division.assign(node, to: store)
      }
      while let node = division.unassigned.first { try division.assign(node, to: 0) }
    }
    let plans = try storeNames.indices.map { store throws(InstarError) in
      var parts: [PlanVersion] = []
      for (index, version) in versions.enumerated() {
        let schema = version.schema.part {
          division.owner[ModelDivision.Node(version: index, name: $0)] == store
        }
        guard !schema.entities.isEmpty || !parts.isEmpty else { continue }
        let layout = try version.layout.format.layout(of: schema)
        if layout.createStatements.isEmpty { throw gap(at: version, in: storeNames[store]) }
        parts.append(
          PlanVersion(
            schema: schema, layout: layout, name: version.name, valueShapes: version.valueShapes))
      }
      return PlanDefinition(self, versions: parts)
    }
    let checked = plans.reduce(into: Set<Invariant>()) { $0.formUnion($1.invariants) }
    if let missing = invariants.first(where: { !checked.contains($0) }) {
      throw InvariantCheck.failure(
        missing, name, "its query reads models that the configurations keep in several stores",
        next: "write one invariant for each store, or keep these models in one store")
    }
    return plans
  }

  private func gap(at version: PlanVersion, in store: String) -> InstarError {
    InstarError(
      .invalidPlan, "cannot use plan \(name) with these configurations",
      cause:
        "\(store) has no table in \(version.schema.version), although it has tables in earlier and later versions",
      next:
        "keep a model of each version in that store, or open these models with one configuration")
  }

  private func table(of node: ModelDivision.Node) -> String? {
    versions[node.version].layout.entityLayouts.first { $0.name == node.name }?.table
  }
}

/// Assigns the models of all versions to the stores of a container.
private struct ModelDivision {
  /// A model of a version.
  struct Node: Hashable {
    /// The index of the version in the plan.
    let version: Int
    let name: String
  }

  /// A connection between two models, which puts them in the same store.
  private struct Tie {
    let other: Node
    /// "Note.folder crosses", "Car inherits": the reason; `nil` where one became the other.
    let link: String?
  }

  private let plan: PlanDefinition
  private let storeNames: [String]
  private var ties: [Node: [Tie]] = [:]
  private(set) var owner: [Node: Int] = [:]

  init(_ plan: PlanDefinition, storeNames: [String]) {
    self.plan = plan
    self.storeNames = storeNames
    for stage in plan.stages {
      guard let from = index(of: stage.fromVersion.versionIdentifier),
        let to = index(of: stage.toVersion.versionIdentifier)
      else { continue }
      let difference = SchemaDifference(
        from: plan.versions[from].schema, to: plan.versions[to].schema)
      for mapping in difference.entities {
        guard let old = mapping.old else { continue }
        tie(Node(version: from, name: old.name), Node(version: to, name: mapping.new.name))
      }
    }
    for (index, version) in plan.versions.enumerated() {
      for entity in version.schema.entities {
        let node = Node(version: index, name: entity.name)
        if let above = entity.superentityName {
          tie(node, Node(version: index, name: above), "\(entity.name) inherits")
        }
        for relationship in entity.relationships {
          tie(
            node, Node(version: index, name: relationship.destination),
            "\(entity.name).\(relationship.name) crosses")
        }
      }
    }
  }

  private func index(of version: Schema.Version) -> Int? {
    plan.versions.firstIndex { $0.schema.version == version }
  }

  private mutating func tie(_ left: Node, _ right: Node, _ link: String? = nil) {
    ties[left, default: []].append(Tie(other: right, link: link))
    ties[right, default: []].append(Tie(other: left, link: link))
  }

  /// The models that are not assigned yet, those of the earliest version first.
  var unassigned: [Node] {
    plan.versions.enumerated().flatMap { index, version in
      version.schema.entities.map { Node(version: index, name: $0.name) }
    }
    .filter { owner[$0] == nil }
  }

  /// Assigns the models of the last version, and all models that are connected to them.
  ///
  /// - Parameter owners: The store of each model of the last version.
  mutating func assignLastVersion(to owners: [String: Int]) throws(InstarError) {
    let nodes = owners.keys.sorted().map { Node(version: plan.versions.count - 1, name: $0) }
    for node in nodes { owner[node] = owners[node.name] }
    // Successors first, relationships second: a relationship between two stores must be reported, not decide the store.
    try follow(nodes) { $0.link == nil }
    try follow(Array(owner.keys)) { _ in true }
  }

  mutating func assign(_ node: Node, to store: Int) throws(InstarError) {
    guard owner[node] == nil else { return }
    owner[node] = store
    try follow([node]) { _ in true }
  }

  /// Assigns the store of each of these to all models connected to it.
  private mutating func follow(
    _ nodes: [Node], along isFollowed: (Tie) -> Bool
  ) throws(InstarError) {
    var waiting = nodes
    while let node = waiting.popLast() {
      guard let store = owner[node] else { continue }
      for tie in ties[node] ?? [] where isFollowed(tie) {
        if let other = owner[tie.other] {
          if other != store { throw conflict(node, tie, other) }
        } else {
          owner[tie.other] = store
          waiting.append(tie.other)
        }
      }
    }
  }

  private func conflict(_ node: Node, _ tie: Tie, _ other: Int) -> InstarError {
    let version = plan.versions[node.version].schema.version
    let link =
      tie.link.map { "\($0) in \(version)" } ?? "\(node.name) of \(version) moves by its stages"
    let here = owner[node].map { storeNames[$0] } ?? ""
    return InstarError(
      .invalidPlan, "cannot use plan \(plan.name) with these configurations",
      cause:
        "\(link) from one store to another: the configurations keep \(node.name) in \(here) and \(tie.other.name) in \(storeNames[other])",
      next: "keep both in one store, or remove the link in a version before they are separated")
  }
}
