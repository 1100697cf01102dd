import Instar
import InstarTestSupport
import Testing

@Suite("A relationship that is set to the models that it has")
struct SelfAssignmentTests {
  @Test(
    "an assignment of the models that a relationship has is not a change",
    arguments: LinkedFormat.allCases)
  func unchanged(format: LinkedFormat) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      let container = try O.container()
      let filling = ModelContext(container)
      let owner = O("x")
      filling.insert(owner)
      owner.members = [O.MemberModel("a"), O.MemberModel("b")]
      owner.topics = [O.TopicModel("t")]
      owner.badge = O.BadgeModel("c")
      try filling.save()
      func assign(in context: ModelContext) throws {
        let owner = try #require(try context.owner("x", O.self))
        owner.members = owner.members
        owner.topics = owner.topics
        owner.guests = owner.guests
        owner.badge = owner.badge
        owner.seal = owner.seal
        for member in try context.all(O.MemberModel.self) {
          member.owner = member.owner
          member.host = member.host
        }
      }
      for context in [filling, ModelContext(container)] {
        try assign(in: context)
        #expect(!context.hasChanges)
        try context.save()
      }
      try container.read { context in
        let fresh = try #require(try context.owner("x", O.self))
        #expect(fresh.members.count == 2 && fresh.topics.count == 1 && fresh.badge != nil)
      }
    }
    try check(format.owner)
  }

  @Test(
    "an assignment without a change keeps unsaved changes from the other side when another context saves",
    arguments: LinkedFormat.allCases)
  func pendingChanges(format: LinkedFormat) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      let container = try O.container()
      let (context, other) = (ModelContext(container), ModelContext(container))
      let owner = O("x")
      context.insert(owner)
      owner.members = [O.MemberModel("a"), O.MemberModel("b")]
      try context.save()
      for member in owner.members where member.name == "a" { member.owner = nil }
      let new = O.MemberModel("c")
      new.owner = owner
      context.insert(new)
      owner.members = owner.members
      other.insert(O("another"))
      try #require(try other.owner("x", O.self)).size = 7
      try other.save()
      _ = try context.all(O.self)
      #expect(owner.members.map(\.name).sorted() == ["b", "c"])
      try context.save()
      #expect(owner.members.map(\.name).sorted() == ["b", "c"])
    }
    try check(format.owner)
  }

  @Test(
    "an assignment without a change keeps what the next saves know of links that the other side made",
    arguments: LinkedFormat.allCases)
  func links(format: LinkedFormat) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      let container = try O.container()
      let context = ModelContext(container)
      let (owner, topic) = (O("x"), O.TopicModel("t"))
      context.insert(owner)
      context.insert(topic)
      try context.save()
      #expect(owner.topics.isEmpty)
      topic.owners.append(owner)
      owner.topics = owner.topics
      try context.save()
      owner.topics = []
      try context.save()
      #expect(try container.read { try $0.all(O.self).map(\.topics.count) } == [0])
      topic.owners = [owner]
      topic.owners = topic.owners
      try context.save()
      #expect(try container.read { try $0.all(O.self).map(\.topics.count) } == [1])
    }
    try check(format.owner)
  }
}
