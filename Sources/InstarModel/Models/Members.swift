/// The members of a to-many relationship in memory, in their order, each once.
///
/// Finding, adding and removing a member takes the same time for any number of members: a long list has a set of
/// identities beside it, made when it is first searched. A removed member of a long list leaves the array when the
/// array is next read.
///
/// Invariants: `identities` has the members of `models` that are not in `removed`; without it `removed` is empty.
/// `order` has the identities of `models`, in their order. `assignedArray` has exactly the members, in their order.
public final class Members {
  private var models: [any PersistentModel]
  private var identities: Set<ObjectIdentifier>?
  private var removed: Set<ObjectIdentifier> = []
  /// The identities to compare with those of an assignment; `nil` until the first one.
  private var order: [ObjectIdentifier]?
  /// The array that code has assigned; `nil` once it was read, or another change was made.
  private var assignedArray: (any ModelList)?
  /// Counts the changes.
  private var version = 0

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
    noteChange()
    models.append(model)
    identities?.insert(ObjectIdentifier(model))
    order?.append(ObjectIdentifier(model))
    return true
  }

  /// Removes a model. Returns `false` if it is not a member.
  @discardableResult
  func remove(_ model: any PersistentModel) -> Bool {
    guard contains(model) else { return false }
    noteChange()
    if identities?.remove(ObjectIdentifier(model)) != nil {
      removed.insert(ObjectIdentifier(model))
    } else {
      models.removeAll { $0 === model }
      order = nil
    }
    return true
  }

  private func leaveOutRemoved() {
    guard !removed.isEmpty else { return }
    models.removeAll { removed.contains(ObjectIdentifier($0)) }
    order = nil
    removed.removeAll()
  }

  private func noteChange() {
    version += 1
    assignedArray = nil
  }

  // MARK: Assignments

  /// Returns the members as the array that code has assigned, if that is known.
  ///
  /// Then this list forgets the array: `folder.notes.append(note)` reads an array, appends to it and assigns it, and
  /// would copy one that somebody else has too.
  func takeArray<Model: PersistentModel>(of type: Model.Type) -> [Model]? {
    guard let array = assignedArray as? [Model] else { return nil }
    assignedArray = nil
    return array
  }

  /// What an assignment changes.
  struct Difference {
    /// The members that are replaced, by their positions.
    fileprivate var range: Range<Int>
    /// The models in their place, without repetitions.
    fileprivate var replacement: [any PersistentModel]
    fileprivate var version: Int
    var added: [any PersistentModel] = []
    var removed: [any PersistentModel] = []
    var isReordered = false
  }

  /// Compares the members with those of an assignment. Only the part between the first and the last difference costs
  /// more than a comparison of addresses, because code changes long relationships by one model at a time.
  func difference(to new: any ModelList) -> Difference {
    leaveOutRemoved()
    let order = self.order ?? models.map { ObjectIdentifier($0) }
    self.order = order
    let (range, newRange) = new.withIdentities { Self.differingRanges(of: order, and: $0) }
    let replaced = Set(order[range])
    var placed: Set<ObjectIdentifier> = []
    var difference = Difference(
      range: range, replacement: new.models(in: newRange), version: version)
    for model in difference.replacement {
      let isFirst = placed.insert(ObjectIdentifier(model)).inserted
      let isMoved = replaced.contains(ObjectIdentifier(model))
      if !isFirst || !isMoved && contains(model) {
        return self.difference(to: MixedModels(Self.withoutRepetition(new.models)))
      }
      if !isMoved { difference.added.append(model) }
    }
    difference.removed = models[range].filter { !placed.contains(ObjectIdentifier($0)) }
    difference.isReordered =
      difference.added.isEmpty && difference.removed.isEmpty && !placed.isEmpty
    return difference
  }

  /// Returns the parts of two lists that are between an equal start and an equal end.
  private static func differingRanges(
    of old: [ObjectIdentifier], and new: UnsafeBufferPointer<ObjectIdentifier>
  ) -> (Range<Int>, Range<Int>) {
    let shared = min(old.count, new.count)
    let start = (0..<shared).first { old[$0] != new[$0] } ?? shared
    let end =
      (0..<(shared - start)).first { old[old.count - 1 - $0] != new[new.count - 1 - $0] }
      ?? shared - start
    return (start..<(old.count - end), start..<(new.count - end))
  }

  /// Whether a difference was made after the last change of the members.
  func isCurrent(_ difference: Difference) -> Bool { difference.version == version }

  /// Makes the changes of an assignment.
  ///
  /// - Parameters:
  ///   - difference: A current one.
  ///   - list: What is assigned.
  func assign(_ list: any ModelList, _ difference: Difference) {
    noteChange()
    models.replaceSubrange(difference.range, with: difference.replacement)
    order?.replaceSubrange(
      difference.range, with: difference.replacement.map { ObjectIdentifier($0) })
    for model in difference.removed { identities?.remove(ObjectIdentifier(model)) }
    for model in difference.added { identities?.insert(ObjectIdentifier(model)) }
    // An array with repetitions has more.
    if list.count == models.count { assignedArray = list }
  }

  /// Returns the models without repetitions, because a relationship has each model once.
  static func withoutRepetition(_ models: [any PersistentModel]) -> [any PersistentModel] {
    if models.count < 2 { return models }
    var seen: Set<ObjectIdentifier> = []
    return models.filter { seen.insert(ObjectIdentifier($0)).inserted }
  }
}
