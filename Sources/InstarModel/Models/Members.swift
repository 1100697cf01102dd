/// The members of a to-many relationship in memory, in their order, each once.
///
/// Finding, adding and removing a member takes the same time for any number of members: a long list has a set of
/// identities beside it, made when it is first searched. A removed member of a long list leaves the array when the
/// array is next read.
///
/// Invariants: `identities` has the members of `models` that are not in `removed`; without it `removed` is empty.
/// `appendedArray` has exactly the members, in their order.
public final class Members {
  private var models: [any PersistentModel]
  private var identities: Set<ObjectIdentifier>?
  private var removed: Set<ObjectIdentifier> = []
  /// The array to which code has appended members; `nil` once it was read, or another change was made.
  private var appendedArray: (any ModelArray)?

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

  var count: Int { identities?.count ?? models.count }

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
    appendedArray = nil
    models.append(model)
    identities?.insert(ObjectIdentifier(model))
    return true
  }

  /// Removes a model. Returns `false` if it is not a member.
  @discardableResult
  func remove(_ model: any PersistentModel) -> Bool {
    guard contains(model) else { return false }
    appendedArray = nil
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

  // MARK: Assignments

  /// Returns the members as the array to which code has appended, if that is known.
  ///
  /// Then this list forgets the array: `folder.notes.append(note)` reads an array, appends to it and assigns it, and
  /// would copy one that somebody else has too.
  func takeArray<Model: PersistentModel>(of type: Model.Type) -> [Model]? {
    guard let array = appendedArray as? [Model] else { return nil }
    appendedArray = nil
    return array
  }

  /// Returns what an array adds to the members: at the end, and each once. `nil` for an array that changes anything
  /// else. The members cost no more than a comparison of addresses.
  func modelsAppended(in array: any ModelArray) -> [any PersistentModel]? {
    leaveOutRemoved()
    guard let appended = array.models(after: models), !appended.isEmpty,
      !appended.contains(where: contains),
      appended.count == 1 || Set(appended.map { ObjectIdentifier($0) }).count == appended.count
    else { return nil }
    return appended
  }

  /// Adds what `modelsAppended(in:)` returned for an array.
  func append(_ appended: [any PersistentModel], in array: any ModelArray) {
    leaveOutRemoved()
    models.append(contentsOf: appended)
    for model in appended { identities?.insert(ObjectIdentifier(model)) }
    appendedArray = array
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
    appendedArray = nil
    models = difference.models
    for model in difference.removed { identities?.remove(ObjectIdentifier(model)) }
    for model in difference.added { identities?.insert(ObjectIdentifier(model)) }
    // Inserting the added models into the context may have added others.
    if identities?.count != models.count { identities = nil }
  }
}
