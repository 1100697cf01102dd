import Instar
import InstarTestSupport
import Testing

/// The rule: the attributes and to-one relationships of the new model are written into the row, which keeps its key.
/// The row keeps the members of its to-many relationships, and those of the new model join them.
@Suite("A new model with a unique value that a row has")
struct UpsertTests {
  /// What a test compares: both sides of every relationship, as text.
  private func links<O: LinkedOwner>(_ type: O.Type, in context: ModelContext) throws -> [String] {
    var found: [String] = []
    for owner in try context.all(O.self) {
      func add(_ kind: String, _ names: [String]) {
        found += names.map { "\(owner.name).\(kind) \($0)" }
      }
      add("members", owner.members.map(\.name))
      add("guests", owner.guests.map(\.name))
      add("topics", owner.topics.map(\.name))
      add("badge", owner.badge.map { [$0.name] } ?? [])
      add("tickets", owner.tickets.map { "\($0.number) \($0.text)" })
    }
    for member in try context.all(O.MemberModel.self) {
      if let owner = member.owner { found.append("\(member.name) in \(owner.name).members") }
      if let host = member.host { found.append("\(member.name) in \(host.name).guests") }
      found += member.tags.map { "\(member.name).tags \($0.name)" }
    }
    for tag in try context.all(O.MemberModel.TagModel.self) {
      found += tag.members.map { "\($0.name) has tag \(tag.name)" }
    }
    for topic in try context.all(O.TopicModel.self) {
      found += topic.owners.map { "\($0.name) has topic \(topic.name)" }
    }
    for badge in try context.all(O.BadgeModel.self) {
      if let owner = badge.owner { found.append("\(badge.name) is badge of \(owner.name)") }
    }
    for ticket in try context.all(O.TicketModel.self) {
      found.append("\(ticket.number) \(ticket.text) of \(ticket.owner.name)")
    }
    return found.sorted()
  }

  /// Expects the links in the context that saved, in which nothing may be left to save, and in a fresh one.
  private func expect<O: LinkedOwner>(
    _ expected: [String], _ type: O.Type, _ context: ModelContext, _ container: ModelContainer,
    _ location: SourceLocation = #_sourceLocation
  ) throws {
    #expect(try links(O.self, in: context) == expected.sorted(), sourceLocation: location)
    #expect(!context.hasChanges, sourceLocation: location)
    #expect(
      try links(O.self, in: ModelContext(container)) == expected.sorted(), sourceLocation: location)
  }

  @Test(
    "a new model takes over the members of the row with its unique value, which see the new model",
    arguments: LinkedFormat.allCases)
  func members(format: LinkedFormat) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      let container = try O.container()
      let context = ModelContext(container)
      let old = O("x")
      let (a, b) = (O.MemberModel("a"), O.MemberModel("b"))
      context.insert(old)
      context.insert(b)
      old.size = 1
      old.members = [a]
      old.topics = [O.TopicModel("t")]
      try context.save()
      let identifier = old.persistentModelID
      let new = O("x")
      context.insert(new)
      new.size = 2
      new.members = [b]
      new.topics.append(O.TopicModel("u"))
      try context.save()
      #expect(new.persistentModelID == identifier && new.size == 2)
      #expect(a.owner === new && b.owner === new)
      #expect(Set(new.members.map(\.name)) == ["a", "b"])
      try expect(
        [
          "x.members a", "x.members b", "a in x.members", "b in x.members", "x.topics t",
          "x.topics u", "x has topic t", "x has topic u",
        ], O.self, context, container)

      // What is changed afterwards reaches the store, from either side.
      a.owner = nil
      new.topics.removeAll { $0.name == "t" }
      try context.save()
      try expect(
        ["x.members b", "b in x.members", "x.topics u", "x has topic u"], O.self, context, container
      )
    }
    try check(format.owner)
  }

  @Test(
    "a new model moves the row with its unique value to its own owner, from that of the row",
    arguments: LinkedFormat.allCases)
  func otherOwner(format: LinkedFormat) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      let container = try O.container()
      let context = ModelContext(container)
      let (one, two) = (O("one"), O("two"))
      let (old, tag) = (O.MemberModel("a"), O.MemberModel.TagModel("t"))
      context.insert(one)
      context.insert(two)
      one.members = [old]
      one.guests = [old]
      old.tags = [tag]
      try context.save()
      let new = O.MemberModel("a")
      new.owner = two
      context.insert(new)
      new.tags = [O.MemberModel.TagModel("u")]
      try context.save()
      #expect(one.members.isEmpty && one.guests.isEmpty && two.members.map { $0 === new } == [true])
      #expect(tag.members.map { $0 === new } == [true])
      try expect(
        [
          "two.members a", "a in two.members", "a.tags t", "a.tags u", "a has tag t", "a has tag u",
        ], O.self, context, container)
    }
    try check(format.owner)
  }

  @Test(
    "a new model stays with the owner of the row with its unique value if it has the same",
    arguments: LinkedFormat.allCases)
  func sameOwner(format: LinkedFormat) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      let container = try O.container()
      let filling = ModelContext(container)
      let first = O("one")
      filling.insert(first)
      first.members = [O.MemberModel("a"), O.MemberModel("b")]
      try filling.save()
      let context = ModelContext(container)
      let one = try #require(try context.owner("one", O.self))
      let new = O.MemberModel("a")
      one.members.append(new)
      #expect(one.members.count == 3)
      try context.save()
      #expect(one.members.count == 2 && one.members.contains { $0 === new })
      try expect(
        ["one.members a", "one.members b", "a in one.members", "b in one.members"], O.self, context,
        container)
    }
    try check(format.owner)
  }

  @Test(
    "a new model has its own one-to-one model, and that of the row has none",
    arguments: LinkedFormat.allCases)
  func oneToOne(format: LinkedFormat) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      let container = try O.container()
      let context = ModelContext(container)
      let old = O("x")
      let badge = O.BadgeModel("b")
      context.insert(old)
      old.badge = badge
      try context.save()
      let new = O("x")
      context.insert(new)
      new.badge = O.BadgeModel("c")
      try context.save()
      #expect(badge.owner == nil)
      try expect(["x.badge c", "c is badge of x"], O.self, context, container)
      context.insert(O("x"))
      try context.save()
      try expect([], O.self, context, container)
    }
    try check(format.owner)
  }

  @Test(
    "a new model is refused if another one would lose its required owner, and nothing is written",
    arguments: LinkedFormat.allCases)
  func requiredOwner(format: LinkedFormat) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      let container = try O.container()
      let context = ModelContext(container)
      let old = O("x")
      context.insert(old)
      context.insert(O.SealModel(owner: old))
      try context.save()
      let new = O("x")
      new.size = 2
      context.insert(new)
      let seal = O.SealModel(owner: new)
      context.insert(seal)
      let error = #expect(throws: SwiftDataError.self) { try context.save() }
      #expect(
        error?.cause?.cause
          == "Owner 1 has its unique value, and Seal 1 would lose its required 'owner'"
      )
      let fresh = ModelContext(container)
      #expect(try fresh.all(O.self).map(\.size) == [0])
      #expect(try fresh.all(O.SealModel.self).count == 1)
      // Without the former seal there is no conflict.
      context.delete(try #require(old.seal))
      try context.save()
      #expect(new.seal === seal && seal.owner === new)
      #expect(
        try container.read { try $0.all(O.SealModel.self).map(\.owner.size) } == [2])
    }
    try check(format.owner)
  }

  @Test(
    "a new model takes the row whose number and required owner are unique together, and no row of another owner",
    arguments: LinkedFormat.allCases)
  func requiredOtherEnd(format: LinkedFormat) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      let container = try O.container()
      let context = ModelContext(container)
      let (one, two) = (O("one"), O("two"))
      context.insert(one)
      context.insert(two)
      context.insert(O.TicketModel(1, owner: one, text: "old"))
      context.insert(O.TicketModel(2, owner: one, text: "kept"))
      try context.save()
      // The unique value contains the owner.
      context.insert(O.TicketModel(1, owner: one, text: "new"))
      context.insert(O.TicketModel(1, owner: two, text: "other"))
      try context.save()
      try expect(
        [
          "one.tickets 1 new", "one.tickets 2 kept", "two.tickets 1 other", "1 new of one",
          "2 kept of one", "1 other of two",
        ], O.self, context, container)
    }
    try check(format.owner)
  }

  @Test(
    "two new models of one save with one unique value share a row; the later one has the last word",
    arguments: LinkedFormat.allCases)
  func twoInOneSave(format: LinkedFormat) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      let container = try O.container()
      let context = ModelContext(container)
      let (first, second) = (O("x"), O("x"))
      let (one, two) = (O("one"), O("two"))
      for model in [one, two, first, second] { context.insert(model) }
      (first.size, second.size) = (1, 2)
      first.members = [O.MemberModel("a")]
      second.members = [O.MemberModel("b")]
      first.badge = O.BadgeModel("lost")
      second.badge = O.BadgeModel("kept")
      let (early, late) = (O.MemberModel("m"), O.MemberModel("m"))
      (early.owner, late.owner) = (one, two)
      early.tags = [O.MemberModel.TagModel("t")]
      late.tags = [O.MemberModel.TagModel("u")]
      try context.save()
      #expect(try context.owner("x", O.self)?.size == 2)
      #expect(one.members.isEmpty && two.members.map { $0 === late } == [true])
      try expect(
        [
          "x.members a", "x.members b", "a in x.members", "b in x.members", "x.badge kept",
          "kept is badge of x", "two.members m", "m in two.members", "m.tags t", "m.tags u",
          "m has tag t", "m has tag u",
        ], O.self, context, container)
    }
    try check(format.owner)
  }

  @Test(
    "two new models of one save take the row with their unique value; the link of the later one stays",
    arguments: LinkedFormat.allCases)
  func twoTakeOneRow(format: LinkedFormat) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      let container = try O.container()
      let context = ModelContext(container)
      context.insert(O("x"))
      try context.save()
      let (first, second) = (O("x"), O("x"))
      for model in [first, second] { context.insert(model) }
      second.badge = O.BadgeModel("kept")
      try context.save()
      try expect(["x.badge kept", "kept is badge of x"], O.self, context, container)
    }
    try check(format.owner)
  }

  @Test(
    "two new models of one save share a row also if their unique value contains a model that is not saved yet",
    arguments: LinkedFormat.allCases, [false, true])
  func uniqueReference(format: LinkedFormat, isOwnerUpsert: Bool) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      let container = try O.container()
      let context = ModelContext(container)
      if isOwnerUpsert {
        let saved = O("x")
        context.insert(saved)
        context.insert(O.TicketModel(1, owner: saved, text: "saved"))
        try context.save()
      }
      let owner = O("x")
      context.insert(O.TicketModel(1, owner: owner, text: "first"))
      context.insert(O.TicketModel(2, owner: owner, text: "other"))
      context.insert(O.TicketModel(1, owner: owner, text: "second"))
      try context.save()
      try expect(
        ["x.tickets 1 second", "x.tickets 2 other", "1 second of x", "2 other of x"], O.self,
        context,
        container)
    }
    try check(format.owner)
  }

  @Test(
    "a row that a new model takes, and the one-to-one model that it frees, are updates in the history"
  )
  func history() throws {
    let folder = try TemporaryFolder()
    let container = try ModelContainer(
      for: Schema([CoreDataLinks.Owner.self]),
      configurations: ModelConfiguration(url: URL(filePath: folder.path("a.store"))))
    let context = ModelContext(container)
    let old = CoreDataLinks.Owner("x")
    context.insert(old)
    old.badge = CoreDataLinks.Badge("b")
    try context.save()
    let identifiers = [old.persistentModelID, try #require(old.badge?.persistentModelID)]
    context.insert(CoreDataLinks.Owner("x"))
    try context.save()
    let last = try context.fetchHistory(HistoryDescriptor<DefaultHistoryTransaction>()).last
    let updated = last?.changes.compactMap { change -> PersistentIdentifier? in
      if case .update = change { change.changedPersistentIdentifier } else { nil }
    }
    #expect(Set(updated ?? []) == Set(identifiers) && last?.changes.count == 2)
    try container.close()
  }

  @Test("two new models of one save share a row if SQLite compares their texts as equal")
  func collation() throws {
    let container = try ModelContainer.inMemory(Nickname.self)
    let context = ModelContext(container)
    for (name, code) in [("Bo", "1"), ("BO", "2"), ("Ö", "3"), ("ö", "4"), ("a", "5 "), ("b", "5")]
    {
      context.insert(Nickname(name: name, code: code))
    }
    try context.save()
    #expect(
      try ModelContext(container).all(Nickname.self).map { $0.name + $0.code }.sorted()
        == ["BO2", "b5", "Ö3", "ö4"])
  }

  @Test(
    "a new model finds the row with its unique value where other changes of the row do not touch that value",
    arguments: LinkedFormat.allCases)
  func changedRow(format: LinkedFormat) throws {
    func check<O: LinkedOwner>(_ type: O.Type, _ size: PartialKeyPath<O>) throws {
      let container = try O.container()
      let filling = ModelContext(container)
      filling.insert(O("x"))
      try filling.save()
      let context = ModelContext(container)
      var descriptor = FetchDescriptor<O>()
      descriptor.propertiesToFetch = [size]
      let old = try #require(try context.fetch(descriptor).first)
      old.size = 1
      let new = O("x")
      new.size = 2
      context.insert(new)
      try context.save()
      #expect(try ModelContext(container).all(O.self).map(\.size) == [2])
      #expect(old.size == 2)
    }
    switch format {
    case .coreData: try check(CoreDataLinks.Owner.self, \.size)
    case .plain: try check(PlainLinks.Owner.self, \.size)
    }
  }

  @Test(
    "a new model that takes a row leaves the former object usable: its changes reach the row, and the new object",
    arguments: LinkedFormat.allCases)
  func formerObject(format: LinkedFormat) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      let container = try O.container()
      let context = ModelContext(container)
      let (old, new) = (O("x"), O("x"))
      context.insert(old)
      try context.save()
      context.insert(new)
      try context.save()
      old.size = 5
      old.members.append(O.MemberModel("a"))
      try context.save()
      #expect(new.size == 5 && new.members.map(\.name) == ["a"])
      new.size = 6
      try context.save()
      #expect(old.size == 6 && old.members.map(\.name) == ["a"])
      try expect(["x.members a", "a in x.members"], O.self, context, container)
      context.delete(old)
      try context.save()
      #expect(new.isDeleted)
      #expect(try context.all(O.self).isEmpty)
    }
    try check(format.owner)
  }

  @Test(
    "a new model that takes a row leaves the former object without changes after a rollback",
    arguments: LinkedFormat.allCases)
  func rollbackOfFormerObject(format: LinkedFormat) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      let container = try O.container()
      let context = ModelContext(container)
      let (old, new, member) = (O("x"), O("x"), O.MemberModel("a"))
      context.insert(old)
      context.insert(member)
      try context.save()
      context.insert(new)
      try context.save()
      member.host = old
      #expect(old.guests.map(\.name) == ["a"])
      context.rollback()
      #expect(old.guests.isEmpty && new.guests.isEmpty && member.host == nil)
    }
    try check(format.owner)
  }

  @Test(
    "a failed save with a new model whose unique value a row has changes nothing",
    arguments: LinkedFormat.allCases)
  func failedSave(format: LinkedFormat) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      let container = try O.container()
      let context = ModelContext(container)
      let (old, other) = (O("x"), O("y"))
      for model in [old, other] { context.insert(model) }
      old.members = [O.MemberModel("a")]
      try context.save()
      let new = O("x")
      context.insert(new)
      new.members.append(O.MemberModel("b"))
      let third = O("z")
      context.insert(third)
      try context.save()
      // A changed row may not take the unique value of another one.
      context.insert(O("x"))
      other.name = "z"
      #expect(throws: SwiftDataError.modelValidationFailure) { try context.save() }
      #expect(new.members.count == 2)
      context.rollback()
      try expect(
        ["x.members a", "x.members b", "a in x.members", "b in x.members"], O.self, context,
        container)
    }
    try check(format.owner)
  }

  @Test("a new model of another class takes the row, without what only the former class has")
  func otherClass() throws {
    let container = try Atlas.container()
    let context = ModelContext(container)
    let country = Atlas.Country(name: "c", code: "c")
    let province = Atlas.Province(name: "x", number: 1, country: country)
    context.insert(province)
    context.insert(Atlas.Place(name: "p", region: province))
    try context.save()
    let region = Atlas.Region(name: "x")
    context.insert(region)
    try context.save()
    for context in [context, ModelContext(container)] {
      let regions = try context.all(Atlas.Region.self)
      #expect(regions.map { "\(type(of: $0)) \($0.name)" }.sorted() == ["Country c", "Region x"])
      #expect(try context.all(Atlas.Country.self).first?.provinces.isEmpty == true)
      #expect(try context.all(Atlas.Place.self).map(\.region?.name) == ["x"])
      #expect(regions.first { $0.name == "x" }?.places.map(\.name) == ["p"])
    }
    #expect(province.name == "x" && province.isDeleted)
  }

  @Test("a new model of another class frees the one-to-one model that only the former class has")
  func oneToOneOfOtherClass() throws {
    let container = try ModelContainer.inMemory(Vehicle.self, Car.self, Plate.self)
    let context = ModelContext(container)
    for name in ["read", "unread"] {
      let car = Car(name: name)
      context.insert(car)
      car.plate = Plate(text: name)
    }
    try context.save()
    let changing = ModelContext(container)
    let plates = try changing.all(Plate.self)
    #expect(plates.first { $0.text == "read" }?.car?.name == "read")
    for name in ["read", "unread"] { changing.insert(Vehicle(name: name)) }
    try changing.save()
    #expect(plates.map { $0.car == nil } == [true, true])
    let fresh = ModelContext(container)
    #expect(try fresh.all(Plate.self).map { $0.car == nil } == [true, true])
    #expect(try fresh.all(Car.self).isEmpty)
    // The freed model can have another one.
    let other = Car(name: "other")
    changing.insert(other)
    other.plate = plates[0]
    try changing.save()
    #expect(try container.read { try $0.all(Plate.self).compactMap(\.car?.name) } == ["other"])
  }

  @Test("a new model has its members in the order of the row, then in its own")
  func ordered() throws {
    let container = try ModelContainer.inMemory(Playlist.self, Song.self)
    let context = ModelContext(container)
    let old = Playlist(name: "x")
    context.insert(old)
    old.songs = ["b", "a"].map { Song(name: $0) }
    try context.save()
    let new = Playlist(name: "x")
    context.insert(new)
    new.songs = ["d", "c"].map { Song(name: $0) }
    try context.save()
    for context in [context, ModelContext(container)] {
      #expect(
        try context.all(Playlist.self).map { $0.songs.map(\.name) } == [["b", "a", "d", "c"]])
    }
  }

  @Test("a new model that takes a row releases the file of the row's large value")
  func largeValue() throws {
    let folder = try TemporaryFolder()
    let container = try ModelContainer(
      for: Schema([Poster.self]),
      configurations: ModelConfiguration(url: URL(filePath: folder.path("a.store"))))
    let context = ModelContext(container)
    for byte in 1...3 {
      context.insert(Poster(name: "x", image: Data(repeating: UInt8(byte), count: 200_000)))
      try context.save()
      #expect(folder.names(".a_SUPPORT/_EXTERNAL_DATA").count == 1)
    }
    #expect(try container.read { try $0.all(Poster.self).first?.image.first } == 3)
    try container.close()
  }
}

@Table
@Model
final class Nickname {
  @Column(.collation("NOCASE")) @Attribute(.unique) var name: String
  @Column(.collation("RTRIM")) @Attribute(.unique) var code: String

  init(name: String, code: String) {
    self.name = name
    self.code = code
  }
}

@Model
class Vehicle {
  @Attribute(.unique) var name: String
  init(name: String) { self.name = name }
}

@Model
final class Car: Vehicle {
  @Relationship(inverse: \Plate.car) var plate: Plate?
  override init(name: String) { super.init(name: name) }
}

@Model
final class Plate {
  var text: String
  var car: Car?
  init(text: String) { self.text = text }
}

@Model
final class Playlist {
  @Attribute(.unique) var name: String
  @Relationship(.ordered, inverse: \Song.playlist) var songs: [Song] = []
  init(name: String) { self.name = name }
}

@Model
final class Song {
  var name: String
  var playlist: Playlist?
  init(name: String) { self.name = name }
}

@Model
final class Poster {
  @Attribute(.unique) var name: String
  @Attribute(.externalStorage) var image: Data

  init(name: String, image: Data) {
    self.name = name
    self.image = image
  }
}
