import Instar
import InstarTestSupport
import Synchronization
import Testing

@testable import InstarModel

/// Random merges of rows, and changes of their relationships without an inverse by two contexts, compared after each
/// save with what a dictionary says.
@Suite("Random merges of rows with relationships without an inverse")
struct RandomMergedLinksTests {
  /// The links of one relationship without an inverse.
  struct Links {
    struct Link: Hashable, Comparable {
      let owner: Int
      let member: Int

      static func < (left: Link, right: Link) -> Bool {
        (left.owner, left.member) < (right.owner, right.member)
      }
    }

    /// What a context changes until it saves.
    struct Changes {
      var added: Set<Link> = []
      var removed: Set<Link> = []
      /// The members that got an owner.
      var claimed: Set<Int> { Set(added.map(\.member)) }
    }

    /// Whether a member has one owner at most, as in a Core Data store.
    let isExclusive: Bool
    var all: Set<Link> = []

    func members(of owner: Int) -> Set<Int> {
      Set(all.filter { $0.owner == owner }.map(\.member))
    }

    func owners(of member: Int) -> Set<Int> {
      Set(all.filter { $0.member == member }.map(\.owner))
    }

    mutating func apply(_ changes: Changes) {
      all.subtract(changes.removed)
      if isExclusive { all = all.filter { !changes.claimed.contains($0.member) } }
      all.formUnion(changes.added)
    }
  }

  /// The pantries, jars and labels of a store by number.
  struct World {
    struct Jar {
      var name: String
      var code: String
    }

    var jars: [Int: Jar] = [:]
    var pantries: Set<Int> = []
    var labels: Set<Int> = []
    /// From pantries to jars.
    var shelves: Links
    /// From jars to labels.
    var tags: Links
    /// The best jars of pantries.
    var best: [Int: Int] = [:]

    init(isExclusive: Bool) {
      shelves = Links(isExclusive: isExclusive)
      tags = Links(isExclusive: isExclusive)
    }

    var lines: [String] {
      let pantries = pantries.map { pantry in
        "p\(pantry) \(best[pantry].flatMap { self.jars[$0]?.name } ?? "nil"): "
          + shelves.members(of: pantry).map { jars[$0]?.name ?? "nil" }.sorted()
          .joined(separator: " ")
      }
      let contents = jars.map { number, jar in
        "\(jar.name) \(jar.code): "
          + tags.members(of: number).map { "l\($0)" }.sorted().joined(separator: " ")
      }
      return (pantries + contents).sorted()
    }

    /// The rows with the unique values of a jar: the one that it takes, then the one that gives way.
    func rows(of jar: Jar) -> [Int] {
      jars.keys.filter { jars[$0]?.name == jar.name }
        + jars.keys.filter { jars[$0]?.code == jar.code && jars[$0]?.name != jar.name }
    }

    /// What a context is to save.
    struct Changes {
      var shelves = Links.Changes()
      var tags = Links.Changes()
      var best: [Int: Int?] = [:]
      var deletedPantries: Set<Int> = []
      var deletedJars: Set<Int> = []
      var new: [(number: Int, jar: Jar)] = []

      /// The pantries that are changed, so that a save fails if others delete them.
      var pantries: Set<Int> {
        Set(shelves.added.map(\.owner)).union(shelves.removed.map(\.owner)).union(best.keys)
      }

      /// The jars that are changed, or that changes reference.
      var jars: Set<Int> {
        Set(shelves.added.map(\.member)).union(shelves.removed.map(\.member))
          .union(tags.added.map(\.owner)).union(tags.removed.map(\.owner))
          .union(best.values.compactMap { $0 })
      }
    }

    mutating func apply(_ changes: Changes) {
      pantries.subtract(changes.deletedPantries)
      for jar in changes.deletedJars { jars[jar] = nil }
      shelves.all = shelves.all.filter {
        !changes.deletedPantries.contains($0.owner) && !changes.deletedJars.contains($0.member)
      }
      tags.all = tags.all.filter { !changes.deletedJars.contains($0.owner) }
      shelves.apply(changes.shelves)
      tags.apply(changes.tags)
      for (owner, jar) in changes.best { best[owner] = jar }
      best = best.filter { !changes.deletedPantries.contains($0.key) }
      for (number, jar) in changes.new { insert(jar, number: number) }
    }

    /// Gives a new jar the rows that have its unique values.
    mutating func insert(_ jar: Jar, number: Int) {
      let rows = rows(of: jar)
      var owners = shelves.owners(of: number)
      for row in rows {
        if owners.isEmpty || !shelves.isExclusive { owners.formUnion(shelves.owners(of: row)) }
      }
      let members = rows.reduce(tags.members(of: number)) { $0.union(tags.members(of: $1)) }
      shelves.all = shelves.all.filter { !rows.contains($0.member) && $0.member != number }
      shelves.all.formUnion(owners.map { Links.Link(owner: $0, member: number) })
      tags.all = tags.all.filter { !rows.contains($0.owner) }
      tags.all.formUnion(members.map { Links.Link(owner: number, member: $0) })
      best = best.mapValues { rows.contains($0) ? number : $0 }
      for row in rows { jars[row] = nil }
      jars[number] = jar
    }
  }

  private struct Play<P: Pantry> {
    typealias JarModel = P.JarModel
    typealias LabelModel = P.JarModel.LabelModel

    /// The models of a context by number.
    struct Models {
      var pantries: [Int: P] = [:]
      var jars: [Int: JarModel] = [:]
      var labels: [Int: LabelModel] = [:]
    }

    let container: ModelContainer
    var context: ModelContext
    /// Saves between the saves of `context`, and sometimes takes its place.
    var other: ModelContext
    /// The contexts do not retain their models.
    var retained: [Models] = []
    var generator: SeededGenerator
    var world: World
    var lastNumber = 0
    var log: [String] = []

    init(seed: UInt64, isExclusive: Bool) throws {
      container = try P.container()
      context = ModelContext(container)
      other = ModelContext(container)
      generator = SeededGenerator(seed: seed)
      world = World(isExclusive: isExclusive)
    }

    private mutating func chance(_ percent: Int) -> Bool {
      Int.random(in: 0..<100, using: &generator) < percent
    }

    private mutating func newNumber() -> Int {
      lastNumber += 1
      return lastNumber
    }

    private mutating func models(in context: ModelContext) throws -> Models {
      var models = Models()
      for pantry in try context.all(P.self) {
        if let number = Int(pantry.name.dropFirst()) { models.pantries[number] = pantry }
      }
      let jars = try context.all(JarModel.self)
      for (number, jar) in world.jars {
        models.jars[number] = jars.first { $0.name == jar.name }
      }
      for label in try context.all(LabelModel.self) {
        if let number = Int(label.text.dropFirst()) { models.labels[number] = label }
      }
      retained = Array(retained.suffix(3)) + [models]
      return models
    }

    /// Assigns members to some owners, and returns what that changes.
    private mutating func assign<Owner, Member>(
      _ links: Links, _ owners: [Int: Owner], _ members: [Int: Member], percent: Int,
      _ assign: (Owner, [Member]) -> Void
    ) -> Links.Changes {
      var changes = Links.Changes()
      for owner in owners.keys.sorted() where chance(percent) {
        let known = links.members(of: owner)
        var new: [Int] = []
        for member in members.keys.sorted() {
          // Of two owners that get a member in one save, the order of the save decides.
          let mayHave = known.contains(member) || !changes.claimed.contains(member)
          guard mayHave, chance(known.contains(member) ? 60 : 25) else { continue }
          new.append(member)
        }
        log.append("    \(owner) gets \(new)")
        guard let model = owners[owner] else { continue }
        assign(model, new.compactMap { members[$0] })
        for member in new where !known.contains(member) {
          changes.added.insert(Links.Link(owner: owner, member: member))
        }
        for member in known where !new.contains(member) {
          changes.removed.insert(Links.Link(owner: owner, member: member))
        }
      }
      return changes
    }

    /// Chooses the best jars of some pantries, and returns the changes.
    private mutating func chooseBest(_ models: Models) -> [Int: Int?] {
      var changes: [Int: Int?] = [:]
      for owner in models.pantries.keys.sorted() where chance(30) {
        let new = chance(25) ? nil : models.jars.keys.sorted().randomElement(using: &generator)
        log.append("    best of p\(owner): \(new.map(String.init) ?? "nil")")
        models.pantries[owner]?.best = new.flatMap { models.jars[$0] }
        // An equal value is not a change.
        if new != world.best[owner] { changes.updateValue(new, forKey: owner) }
      }
      return changes
    }

    /// Some changes of links and new jars, and their save.
    mutating func step() throws {
      if chance(40) { swap(&context, &other) }
      if chance(20) { context = ModelContext(container) }
      log.append("save \(world.lines)")
      var models = try models(in: context)
      for _ in models.pantries.count..<max(3, models.pantries.count) {
        let number = newNumber()
        let pantry = P("p\(number)")
        context.insert(pantry)
        models.pantries[number] = pantry
        world.pantries.insert(number)
      }
      var changes = World.Changes()
      changes.shelves = assign(world.shelves, models.pantries, models.jars, percent: 40) {
        $0.jars = $1
      }
      changes.tags = assign(world.tags, models.jars, models.labels, percent: 25) { $0.labels = $1 }
      changes.best = chooseBest(models)
      for number in models.pantries.keys.sorted() where chance(15) {
        log.append("  delete p\(number)")
        changes.deletedPantries.insert(number)
        if let pantry = models.pantries.removeValue(forKey: number) { context.delete(pantry) }
      }
      changes.shelves.added = changes.shelves.added.filter {
        !changes.deletedPantries.contains($0.owner)
      }
      let new = insert(models, &changes)
      if chance(30) {
        let changes = try changeElsewhere(besides: changes)
        try other.save()
        noteElsewhere(changes)
      } else if !new.isEmpty, chance(40) {
        return try saveDuringMerge(of: new, models, changes)
      }
      if chance(30) { try failOnce() }
      try context.save()
      world.apply(changes)
      try checkAll()
    }

    /// Notes what the other context has saved.
    private mutating func noteElsewhere(_ changes: World.Changes) {
      world.apply(changes)
      // Without an inverse, an array in memory keeps a member that its own context deletes.
      if !changes.deletedJars.isEmpty { other = ModelContext(container) }
    }

    private func checkAll() throws {
      try check("in memory", context)
      try check("in the other context", other)
      try container.read { try check("in a fresh context", $0) }
    }

    /// Lets the other context save when the save changes a model for a merge, so between two attempts to write.
    private mutating func saveDuringMerge(
      of new: [any PersistentModel], _ models: Models, _ changes: World.Changes
    ) throws {
      let changesElsewhere = try changeElsewhere(besides: changes)
      // All run in this thread.
      nonisolated(unsafe) let (second, inserted) = (other, new)
      let isSaved = Mutex(false)
      // If nothing changes during this save, the observation waits for a later one.
      let isSaving = Mutex(true)
      defer { isSaving.withLock { $0 = false } }
      withObservationTracking {
        for pantry in models.pantries.values { _ = (pantry.jars, pantry.best) }
        for jar in models.jars.values { _ = jar.labels }
      } onChange: {
        // The end of the save changes models too.
        guard isSaving.withLock(\.self), inserted.allSatisfy({ $0.hasChanges }) else { return }
        #expect(throws: Never.self) { try second.save() }
        isSaved.withLock { $0 = true }
      }
      if chance(30) { try failOnce() }
      try context.save()
      if isSaved.withLock(\.self) {
        log.append("  saved during the merge")
        noteElsewhere(changesElsewhere)
      } else {
        log.append("  rolled back")
        other.rollback()
      }
      world.apply(changes)
      try checkAll()
    }

    /// Inserts new jars that share no row.
    private mutating func insert(
      _ models: Models, _ changes: inout World.Changes
    ) -> [any PersistentModel] {
      var new: [any PersistentModel] = []
      var used: Set<Int> = []
      for _ in 0..<Int.random(in: 0...2, using: &generator) {
        let values = (0..<2).map { _ in Int.random(in: 0..<6, using: &generator) }
        let jar = World.Jar(name: "n\(values[0])", code: "c\(values[1])")
        let rows = world.rows(of: jar)
        let isFree = changes.new.allSatisfy { $0.jar.name != jar.name && $0.jar.code != jar.code }
        guard isFree, used.isDisjoint(with: rows) else { continue }
        used.formUnion(rows)
        let number = newNumber()
        changes.new.append((number, jar))
        log.append("  insert \(number): \(jar.name) \(jar.code)")
        let model = JarModel(jar.name, jar.code)
        context.insert(model)
        new.append(model)
        if chance(40), changes.shelves.claimed.isDisjoint(with: rows),
          let owner = models.pantries.keys.sorted().randomElement(using: &generator)
        {
          log.append("    into p\(owner)")
          models.pantries[owner]?.jars.append(model)
          changes.shelves.added.insert(Links.Link(owner: owner, member: number))
        }
        if chance(30), let owner = models.pantries.keys.sorted().randomElement(using: &generator) {
          log.append("    best of p\(owner)")
          models.pantries[owner]?.best = model
          changes.best[owner] = number
        }
        if chance(40) {
          let known = models.labels.keys.sorted().filter { !changes.tags.claimed.contains($0) }
          let label: Int
          if models.labels.count > 6 || chance(50),
            let chosen = known.randomElement(using: &generator),
            let labelModel = models.labels[chosen]
          {
            label = chosen
            model.labels.append(labelModel)
          } else {
            label = newNumber()
            model.labels.append(LabelModel("l\(label)"))
          }
          log.append("    with l\(label)")
          changes.tags.added.insert(Links.Link(owner: number, member: label))
        }
      }
      return new
    }

    /// Lets the other context change links that the context may have changed too, delete what it has not changed, and
    /// insert a jar.
    private mutating func changeElsewhere(besides mine: World.Changes) throws -> World.Changes {
      log.append("  meanwhile:")
      let models = try models(in: other)
      var changes = World.Changes()
      changes.shelves = assign(world.shelves, models.pantries, models.jars, percent: 40) {
        $0.jars = $1
      }
      changes.tags = assign(world.tags, models.jars, models.labels, percent: 25) { $0.labels = $1 }
      changes.best = chooseBest(models)
      for number in models.pantries.keys.sorted()
      where !mine.pantries.contains(number) && chance(15) {
        log.append("    delete p\(number)")
        changes.deletedPantries.insert(number)
        if let pantry = models.pantries[number] { other.delete(pantry) }
      }
      changes.shelves.added = changes.shelves.added.filter {
        !changes.deletedPantries.contains($0.owner)
      }
      // A deleted jar stays in rows that reference it without an inverse.
      var inUse = mine.jars.union(changes.jars)
      for number in models.jars.keys.sorted()
      where !inUse.contains(number) && !world.best.values.contains(number) && chance(15) {
        log.append("    delete \(number)")
        changes.deletedJars.insert(number)
        if let jar = models.jars[number] { other.delete(jar) }
      }
      inUse.formUnion(changes.deletedJars)
      // It could join two new jars of the context.
      if mine.new.count < 2, chance(40) {
        let values = (0..<2).map { _ in Int.random(in: 0..<6, using: &generator) }
        let jar = World.Jar(name: "n\(values[0])", code: "c\(values[1])")
        if inUse.isDisjoint(with: world.rows(of: jar)) {
          let number = newNumber()
          log.append("    insert \(number): \(jar.name) \(jar.code)")
          changes.new.append((number, jar))
          other.insert(JarModel(jar.name, jar.code))
        }
      }
      return changes
    }

    /// Lets a save fail at a random row, which must leave the models in memory as they are.
    private mutating func failOnce() throws {
      let row = Int.random(in: 1...6, using: &generator)
      log.append("  fail row \(row)")
      let count = Mutex(0)
      context.beforeWrite = {
        let number = count.withLock { count in
          count += 1
          return count
        }
        if number == row { throw CancellationError() }
      }
      defer { context.beforeWrite = nil }
      do {
        try context.save()
      } catch is CancellationError {}
    }

    private func check(_ place: String, _ context: ModelContext) throws {
      let pantries = try context.all(P.self).map {
        "\($0.name) \($0.best?.name ?? "nil"): "
          + $0.jars.map(\.name).sorted().joined(separator: " ")
      }
      let jars = try context.all(JarModel.self).map {
        "\($0.name) \($0.code): " + $0.labels.map(\.text).sorted().joined(separator: " ")
      }
      let found = (pantries + jars).sorted()
      if found != world.lines {
        throw RandomLinksTests.Mismatch(
          description: "\(place): found \(found), expected \(world.lines)")
      }
      if context.hasChanges {
        throw RandomLinksTests.Mismatch(description: "\(place): there are changes")
      }
    }
  }

  /// To repeat a failure, set `INSTAR_TEST_SEED` to the seed that it prints.
  @Test(
    "after each save memory and a fresh context have the same links",
    arguments: LinkedFormat.allCases)
  func random(format: LinkedFormat) throws {
    let fixed = ProcessInfo.processInfo.environment["INSTAR_TEST_SEED"].flatMap(UInt64.init)
    func play<P: Pantry>(_ type: P.Type) throws {
      for _ in 0..<(fixed == nil ? 20 : 1) {
        let seed = fixed ?? UInt64.random(in: 0 ... .max)
        var play = try Play<P>(seed: seed, isExclusive: format == .coreData)
        do {
          for _ in 0..<50 { try play.step() }
        } catch {
          Issue.record("seed \(seed): \(error)\n\(play.log.suffix(30).joined(separator: "\n"))")
          return
        }
      }
    }
    try play(format.pantry)
  }
}
