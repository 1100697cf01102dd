import Instar
import Testing

@Suite("A new model that is deleted before it is saved")
struct WithdrawnModelTests {
  @Test(
    "a model deleted before its first save leaves the relationships of the others, whichever side set them",
    arguments: LinkedFormat.allCases)
  func relationships(format: LinkedFormat) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      let container = try O.container()
      let context = ModelContext(container)
      let (owner, tag) = (O("x"), O.MemberModel.TagModel("t"))
      context.insert(owner)
      context.insert(tag)
      try context.save()
      let (member, badge) = (O.MemberModel("a"), O.BadgeModel("b"))
      owner.members.append(member)
      member.host = owner
      member.tags = [tag]
      owner.badge = badge
      context.delete(member)
      context.delete(badge)
      #expect(owner.members.isEmpty && owner.guests.isEmpty && tag.members.isEmpty)
      #expect(owner.badge == nil)
      #expect(member.owner == nil && member.host == nil && member.tags.isEmpty)
      #expect(context.insertedModelsArray.isEmpty)
      try context.save()
      for context in [context, ModelContext(container)] {
        let owner = try #require(try context.owner("x", O.self))
        #expect(owner.members.isEmpty && owner.guests.isEmpty && owner.badge == nil)
        #expect(try context.all(O.MemberModel.TagModel.self).first?.members.isEmpty == true)
        #expect(try context.all(O.MemberModel.self).isEmpty)
      }
    }
    try check(format.owner)
  }

  @Test(
    "a model deleted before its first save leaves the members that are kept without it",
    arguments: LinkedFormat.allCases)
  func owner(format: LinkedFormat) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      let container = try O.container()
      let context = ModelContext(container)
      let (saved, topic) = (O.MemberModel("saved"), O.TopicModel("t"))
      context.insert(saved)
      context.insert(topic)
      try context.save()
      let owner = O("x")
      context.insert(owner)
      owner.guests = [saved, O.MemberModel("new")]
      owner.wards = [saved]
      context.delete(owner)
      #expect(saved.host == nil && saved.guardian == nil)
      try context.save()
      for context in [context, ModelContext(container)] {
        #expect(try context.all(O.MemberModel.self).map(\.name).sorted() == ["new", "saved"])
        #expect(try context.all(O.MemberModel.self).allSatisfy { $0.host == nil })
        #expect(try context.all(O.TopicModel.self).count == 1)
      }
    }
    try check(format.owner)
  }

  @Test(
    "a model deleted before its first save takes the members along that are deleted with it, unless they move",
    arguments: LinkedFormat.allCases)
  func cascade(format: LinkedFormat) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      let container = try O.container()
      let context = ModelContext(container)
      let (kept, doomed, other) = (O.MemberModel("kept"), O.MemberModel("doomed"), O("other"))
      let free = O.MemberModel("free")
      for model in [kept, doomed, free] { context.insert(model) }
      context.insert(other)
      try context.save()
      let owner = O("x")
      context.insert(owner)
      owner.members = [kept, doomed, free, O.MemberModel("new")]
      context.insert(O.TicketModel(1, owner: owner, text: ""))
      context.delete(owner)
      kept.owner = other
      free.owner = other
      free.owner = nil
      try context.save()
      for context in [context, ModelContext(container)] {
        #expect(try context.all(O.MemberModel.self).map(\.name).sorted() == ["free", "kept"])
        #expect(try context.owner("other", O.self)?.members.map(\.name) == ["kept"])
        #expect(try context.all(O.TicketModel.self).isEmpty)
      }
    }
    try check(format.owner)
  }

  @Test(
    "a model deleted before its first save takes its members along where the save deletes it with its owner"
  )
  func cascadeOverNewModel() throws {
    let container = try Campus.container()
    let context = ModelContext(container)
    let (campus, saved) = (Campus("c"), Desk("saved"))
    context.insert(campus)
    context.insert(saved)
    try context.save()
    let wing = Wing("w")
    campus.wings.append(wing)
    wing.desks = [saved, Desk("new")]
    context.delete(campus)
    try context.save()
    #expect(!context.hasChanges)
    for context in [context, ModelContext(container)] {
      #expect(try context.all(Campus.self).isEmpty)
      #expect(try context.all(Wing.self).isEmpty)
      #expect(try context.all(Desk.self).map(\.name) == [])
    }
  }

  @Test(
    "a model deleted before its first save leaves saved members of a relationship without an inverse to their owner"
  )
  func savedMembersWithoutInverse() throws {
    let container = try ModelContainer.inMemory(Crate.self, Bottle.self)
    let filling = ModelContext(container)
    let owner = Crate(name: "owner")
    filling.insert(owner)
    owner.bottles = [Bottle(name: "saved")]
    try filling.save()
    let context = ModelContext(container)
    let crate = Crate(name: "new")
    context.insert(crate)
    crate.bottles = try context.all(Bottle.self) + [Bottle(name: "new")]
    context.delete(crate)
    try context.save()
    for context in [context, ModelContext(container)] {
      #expect(try context.all(Bottle.self).map(\.name) == ["saved"])
      #expect(try context.all(Crate.self).map { $0.bottles.map(\.name) } == [["saved"]])
    }
  }

  @Test(
    "a model deleted before its first save takes nothing along if the changes are rolled back",
    arguments: LinkedFormat.allCases)
  func rollback(format: LinkedFormat) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      let container = try O.container()
      let context = ModelContext(container)
      let (member, former) = (O.MemberModel("a"), O("former"))
      context.insert(former)
      former.members = [member]
      try context.save()
      let owner = O("x")
      context.insert(owner)
      owner.members = [member]
      context.delete(owner)
      context.rollback()
      #expect(member.owner === former && former.members.map { $0 === member } == [true])
      try context.save()
      #expect(
        try container.read { try $0.all(O.MemberModel.self).map(\.owner?.name) } == ["former"])
    }
    try check(format.owner)
  }

  @Test("a model deleted before its first save leaves relationships that have no inverse")
  func withoutInverse() throws {
    let container = try ModelContainer.inMemory(Crate.self, Bottle.self, Shelf.self)
    let context = ModelContext(container)
    let (crate, shelf, bottle) = (Crate(name: "c"), Shelf(), Bottle(name: "b"))
    context.insert(crate)
    context.insert(shelf)
    try context.save()
    crate.bottles = [bottle]
    shelf.bottle = bottle
    shelf.bottles = [bottle]
    context.delete(bottle)
    #expect(crate.bottles.isEmpty && shelf.bottle == nil && shelf.bottles.isEmpty)
    try context.save()
    for context in [context, ModelContext(container)] {
      #expect(try context.all(Crate.self).map(\.bottles.count) == [0])
      #expect(try context.all(Shelf.self).map { $0.bottle == nil } == [true])
    }
  }
}

extension WithdrawnModelTests {
  @Test(
    "a model deleted before its first save leaves relationships without inverse, also those that were set between two deletions"
  )
  func oneSidedBetweenDeletions() throws {
    let context = ModelContext(
      try ModelContainer.inMemory(Bottle.self, Shelf.self))
    let shelves = (0..<20).map { _ in Shelf() }
    for shelf in shelves {
      context.insert(shelf)
      shelf.bottle = Bottle(name: "")
    }
    for (position, shelf) in shelves.enumerated() {
      if let bottle = shelf.bottle { context.delete(bottle) }
      if position % 2 == 0 { shelf.bottle = Bottle(name: "new") }
    }
    #expect(shelves.filter { $0.bottle != nil }.count == 10)
    try context.save()
    #expect(
      try context.fetch(FetchDescriptor<Bottle>()).map(\.name) == Array(repeating: "new", count: 10)
    )
  }
}

@Model
final class Shelf {
  @Relationship(.withoutInverse) var bottle: Bottle?
  @Relationship(.withoutInverse) var bottles: [Bottle] = []
  init() {}
}
