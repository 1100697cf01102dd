/// The members of a to-many relationship in memory, in their order, each once.
///
/// Finding, adding and removing a member takes the same time for any number of members: a long list has a set of
/// identities beside it, made when it is first searched. A removed member of a long list leaves the array when the
/// array is next read.
///
/// Invariants: `identities` has the members of `models` that are not in `removed`; without it `removed` is empty.
public final class Members {
  private var models: [any PersistentModel]
  private var identities: Set<ObjectIdentifier>?
  private var removed: Set<ObjectIdentifier> = []

  /// A list up to this length is searched from its start.
  private static let searchLimit = 16

  /// - Parameter models: Without repetitions.
  init(_ models: [any PersistentModel] = []) {
    self.models = models
  }

  var all: [any PersistentModel] {
    leaveOutRemoved()
    return models
  }

  var isEmpty: Bool { identities?.isEmpty ?? models.isEmpty }

  func contains(_ model: any PersistentModel) -> Bool {
    if identities == nil {
      if models.count <= Self.searchLimit { return models.contains { $0 === model } }
      identities = Set(models.map { ObjectIdentifier($0) })
    }
    return identities?.contains(ObjectIdentifier(model)) == true
  }

  /// Adds a model at the end. Returns `false` if it is a member.
  func append(_ model: any PersistentModel) -> Bool {
    if contains(model) { return false }
    if removed.contains(ObjectIdentifier(model)) { leaveOutRemoved() }
    models.append(model)
    identities?.insert(ObjectIdentifier(model))
    return true
  }

  /// Removes a model. Returns `false` if it is not a member.
  @discardableResult
  func remove(_ model: any PersistentModel) -> Bool {
    guard contains(model) else { return false }
    if identities?.remove(ObjectIdentifier(model)) != nil {
      removed.insert(ObjectIdentifier(model))
    } else {
      models.removeAll { $0 === model }
    }
    return true
  }

  private func leaveOutRemoved() {
    guard !removed.isEmpty else { return }
    models.removeAll { removed.contains(ObjectIdentifier($0)) }
    removed.removeAll()
  }

  /// What an assignment changes.
  struct Difference {
    /// The new members, without repetitions.
    var models: [any PersistentModel]
    var added: [any PersistentModel] = []
    var removed: [any PersistentModel] = []
    var isReordered = false
  }

  /// Compares the members with those of an assignment. Only the part between the first and the last difference costs
  /// more than a comparison of addresses, because code appends to long relationships one model at a time.
  func difference(to new: [any PersistentModel]) -> Difference {
    let old = all
    let shared = min(old.count, new.count)
    let start = (0..<shared).first { old[$0] !== new[$0] } ?? shared
    let end =
      (0..<(shared - start)).first { old[old.count - 1 - $0] !== new[new.count - 1 - $0] }
      ?? shared - start
    let oldPart = old[start..<(old.count - end)]
    let newPart = new[start..<(new.count - end)]
    let oldIdentities = Set(oldPart.map { ObjectIdentifier($0) })
    var newIdentities: Set<ObjectIdentifier> = []
    var difference = Difference(models: new)
    for model in newPart {
      let isFirst = newIdentities.insert(ObjectIdentifier(model)).inserted
      let isMoved = oldIdentities.contains(ObjectIdentifier(model))
      if !isFirst || !isMoved && contains(model) {
        return self.difference(to: Self.withoutRepetition(new))
      }
      if !isMoved { difference.added.append(model) }
    }
    difference.removed = oldPart.filter { !newIdentities.contains(ObjectIdentifier($0)) }
    difference.isReordered =
      difference.added.isEmpty && difference.removed.isEmpty && !newPart.isEmpty
    return difference
  }

  /// Returns the models without repetitions, because a relationship has each model once.
  static func withoutRepetition(_ models: [any PersistentModel]) -> [any PersistentModel] {
    if models.count < 2 { return models }
    var seen: Set<ObjectIdentifier> = []
    return models.filter { seen.insert(ObjectIdentifier($0)).inserted }
  }

  /// Takes over the members of an assignment.
  func assign(_ difference: Difference) {
    leaveOutRemoved()
    models = difference.models
    for model in difference.removed { identities?.remove(ObjectIdentifier(model)) }
    for model in difference.added { identities?.insert(ObjectIdentifier(model)) }
    // Inserting the added models into the context may have added others.
    if identities?.count != models.count { identities = nil }
  }
}
