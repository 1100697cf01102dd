import Instar
import Testing

@Suite("Members that move to another owner in the save that deletes their owner")
struct MovedMembersTests {
  /// How a member gets another owner.
  enum Move: CaseIterable {
    case byMember, byOwner, byArray
  }

  /// Whether the relationship of the deleted owner is in memory.
  enum Memory: CaseIterable {
    case read, unread
  }

  private func move<O: LinkedOwner>(
    _ member: O.MemberModel, to new: O, _ move: Move, _ link: WritableKeyPath<O.MemberModel, O?>,
    _ members: WritableKeyPath<O, [O.MemberModel]>
  ) {
    var (member, new) = (member, new)
    switch move {
    case .byMember: member[keyPath: link] = new
    case .byOwner: new[keyPath: members].append(member)
    case .byArray: new[keyPath: members] = [member]
    }
  }

  /// Deletes an owner of the members a and b, moves a, and returns the context after the save.
  private func deleteAndMove<O: LinkedOwner>(
    _ type: O.Type, _ kind: Move, _ memory: Memory, isDeletedFirst: Bool,
    _ link: WritableKeyPath<O.MemberModel, O?>, _ members: WritableKeyPath<O, [O.MemberModel]>,
    moving names: Set<String> = ["a"]
  ) throws -> (context: ModelContext, container: ModelContainer) {
    let container = try O.container()
    let filling = ModelContext(container)
    var old = O("old")
    filling.insert(old)
    filling.insert(O("new"))
    old[keyPath: members] = [O.MemberModel("a"), O.MemberModel("b")]
    try filling.save()

    let context = ModelContext(container)
    let (from, to) = (
      try #require(try context.owner("old", O.self)), try #require(try context.owner("new", O.self))
    )
    if memory == .read { #expect(from[keyPath: members].count == 2) }
    if isDeletedFirst { context.delete(from) }
    for member in try context.all(O.MemberModel.self) where names.contains(member.name) {
      move(member, to: to, kind, link, members)
    }
    if !isDeletedFirst { context.delete(from) }
    try context.save()
    return (context, container)
  }

  private func names<O: LinkedOwner>(
    _ members: WritableKeyPath<O, [O.MemberModel]>, of name: String, in context: ModelContext
  ) throws -> [String] {
    try #require(try context.owner(name, O.self))[keyPath: members].map(\.name).sorted()
  }

  @Test(
    "members that move to another owner survive a cascade, and are linked to the new owner",
    arguments: LinkedFormat.allCases, Move.allCases)
  func cascade(format: LinkedFormat, kind: Move) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      for memory in Memory.allCases {
        for isDeletedFirst in [true, false] {
          let (context, container) = try deleteAndMove(
            O.self, kind, memory, isDeletedFirst: isDeletedFirst, \.owner, \O.members)
          for context in [context, ModelContext(container)] {
            #expect(try context.all(O.MemberModel.self).map(\.name) == ["a"])
            #expect(try context.all(O.MemberModel.self).map(\.owner?.name) == ["new"])
            #expect(try names(\O.members, of: "new", in: context) == ["a"])
          }
        }
      }
    }
    try check(format.owner)
  }

  @Test(
    "members that move to another owner keep their link to it where the rule is nullify",
    arguments: LinkedFormat.allCases)
  func nullify(format: LinkedFormat) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      for (kind, memory) in zip([Move.byMember, .byOwner], Memory.allCases) {
        let (context, container) = try deleteAndMove(
          O.self, kind, memory, isDeletedFirst: true, \.host, \O.guests)
        for context in [context, ModelContext(container)] {
          #expect(try context.member("a", O.MemberModel.self)?.host?.name == "new")
          #expect(try context.member("b", O.MemberModel.self)?.host == nil)
          #expect(try names(\O.guests, of: "new", in: context) == ["a"])
        }
      }
    }
    try check(format.owner)
  }

  @Test(
    "members that move to another owner no longer forbid the deletion where the rule is deny",
    arguments: LinkedFormat.allCases)
  func deny(format: LinkedFormat) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      for memory in Memory.allCases {
        let (_, container) = try deleteAndMove(
          O.self, .byMember, memory, isDeletedFirst: true, \.guardian, \O.wards,
          moving: ["a", "b"])
        #expect(try names(\O.wards, of: "new", in: ModelContext(container)) == ["a", "b"])
        #expect(throws: SwiftDataError.modelValidationFailure) {
          try deleteAndMove(
            O.self, .byMember, memory, isDeletedFirst: true, \.guardian, \O.wards)
        }
      }
    }
    try check(format.owner)
  }

  @Test(
    "members that move to another owner survive a cascade of a to-one relationship",
    arguments: LinkedFormat.allCases)
  func toOne(format: LinkedFormat) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      for isDeletedFirst in [true, false] {
        let container = try O.container()
        let filling = ModelContext(container)
        let (old, new) = (O("old"), O("new"))
        filling.insert(old)
        filling.insert(new)
        old.badge = O.BadgeModel("badge")
        try filling.save()
        let context = ModelContext(container)
        let from = try #require(try context.owner("old", O.self))
        if isDeletedFirst { context.delete(from) }
        let badge = try #require(try context.all(O.BadgeModel.self).first)
        badge.owner = try context.owner("new", O.self)
        if !isDeletedFirst { context.delete(from) }
        try context.save()
        for context in [context, ModelContext(container)] {
          #expect(try context.owner("new", O.self)?.badge?.name == "badge")
          #expect(try context.all(O.BadgeModel.self).map(\.owner?.name) == ["new"])
        }
      }
    }
    try check(format.owner)
  }

  @Test(
    "members that move to another owner survive a cascade of a many-to-many relationship",
    arguments: LinkedFormat.allCases)
  func manyToMany(format: LinkedFormat) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      let container = try O.container()
      let filling = ModelContext(container)
      let (old, new) = (O("old"), O("new"))
      filling.insert(old)
      filling.insert(new)
      old.topics = [O.TopicModel("a"), O.TopicModel("b")]
      try filling.save()
      let context = ModelContext(container)
      context.delete(try #require(try context.owner("old", O.self)))
      let topic = try #require(try context.all(O.TopicModel.self).first { $0.name == "a" })
      topic.owners = [try #require(try context.owner("new", O.self))]
      try context.save()
      for context in [context, ModelContext(container)] {
        #expect(try context.owner("new", O.self)?.topics.map(\.name) == ["a"])
        #expect(try context.all(O.TopicModel.self).map { $0.owners.map(\.name) } == [["new"]])
      }
    }
    try check(format.owner)
  }

  @Test(
    "members that move to another owner survive a cascade of the class that their former owner inherits from"
  )
  func inheritance() throws {
    let container = try Atlas.container()
    let filling = ModelContext(container)
    let (old, new) = (Atlas.Country(name: "old", code: "o"), Atlas.Region(name: "new"))
    filling.insert(old)
    filling.insert(new)
    for name in ["a", "b"] { filling.insert(Atlas.Place(name: name, region: old)) }
    try filling.save()
    let context = ModelContext(container)
    let regions = try context.all(Atlas.Region.self)
    let target = try #require(regions.first { $0.name == "new" })
    for region in regions where region.name == "old" { context.delete(region) }
    target.places.append(try #require(try context.all(Atlas.Place.self).first { $0.name == "a" }))
    try context.save()
    for context in [context, ModelContext(container)] {
      #expect(try context.all(Atlas.Place.self).map(\.name) == ["a"])
      #expect(try context.all(Atlas.Region.self).map { $0.places.map(\.name) } == [["a"]])
    }
  }

  @Test("members that move to another owner survive a cascade of a relationship without an inverse")
  func withoutInverse() throws {
    for isDeletedFirst in [true, false] {
      let container = try ModelContainer.inMemory(Crate.self, Bottle.self)
      let filling = ModelContext(container)
      for name in ["old", "new"] { filling.insert(Crate(name: name)) }
      let old = try #require(try filling.all(Crate.self).first { $0.name == "old" })
      old.bottles = [Bottle(name: "a"), Bottle(name: "b")]
      try filling.save()
      let context = ModelContext(container)
      let crates = try context.all(Crate.self)
      let (from, to) = (
        try #require(crates.first { $0.name == "old" }),
        try #require(crates.first { $0.name == "new" })
      )
      if isDeletedFirst { context.delete(from) }
      to.bottles.append(try #require(try context.all(Bottle.self).first { $0.name == "a" }))
      if !isDeletedFirst { context.delete(from) }
      try context.save()
      for context in [context, ModelContext(container)] {
        #expect(try context.all(Bottle.self).map(\.name) == ["a"])
        #expect(try context.all(Crate.self).map { $0.bottles.map(\.name) } == [["a"]])
      }
    }
  }

  @Test(
    "members that move to another owner stay where a later save deletes the former owner of a relationship without an inverse"
  )
  func withoutInverseInEarlierSave() throws {
    let container = try ModelContainer.inMemory(Crate.self, Bottle.self)
    let context = ModelContext(container)
    let (old, new, moving) = (Crate(name: "old"), Crate(name: "new"), Bottle(name: "a"))
    context.insert(old)
    context.insert(new)
    old.bottles = [moving, Bottle(name: "b")]
    try context.save()
    new.bottles.append(moving)
    try context.save()
    #expect(old.bottles.map(\.name) == ["b"] && new.bottles.map(\.name) == ["a"])
    context.delete(old)
    try context.save()
    for context in [context, ModelContext(container)] {
      #expect(try context.all(Bottle.self).map(\.name) == ["a"])
      #expect(try context.all(Crate.self).map { $0.bottles.map(\.name) } == [["a"]])
    }
  }

  @Test(
    "members that move to another owner stay where the deletion of their former owner's owner would delete both in the database"
  )
  func overTwoTables() throws {
    let container = try Campus.container()
    let context = ModelContext(container)
    let (old, new) = (Campus("old"), Campus("new"))
    context.insert(old)
    context.insert(new)
    let (from, to) = (Wing("from"), Wing("to"))
    old.wings = [from]
    new.wings = [to]
    from.desks = [Desk("a"), Desk("b")]
    try context.save()
    from.desks.first { $0.name == "a" }?.wing = to
    context.delete(old)
    try context.save()
    for context in [context, ModelContext(container)] {
      #expect(try context.all(Campus.self).map(\.name) == ["new"])
      #expect(try context.all(Desk.self).map { "\($0.name) \($0.wing?.name ?? "")" } == ["a to"])
    }
  }

  @Test(
    "members that move to another owner free their former owner for its deletion with its own owner where the rules are deny"
  )
  func denyOverTwoTables() throws {
    let container = try ModelContainer.inMemory(Bureau.self, Clerk.self, Chore.self)
    let context = ModelContext(container)
    let (old, new) = (Clerk("old"), Clerk("new"))
    let (left, kept, chore) = (Bureau("left"), Bureau("kept"), Chore("chore"))
    for bureau in [left, kept] { context.insert(bureau) }
    left.clerks = [old]
    kept.clerks = [new]
    old.chores = [chore]
    try context.save()
    chore.clerk = new
    context.delete(old)
    context.delete(left)
    try context.save()
    for context in [context, ModelContext(container)] {
      #expect(try context.all(Bureau.self).map(\.name) == ["kept"])
      #expect(try context.all(Clerk.self).map(\.name) == ["new"])
      #expect(try context.all(Chore.self).map(\.clerk?.name) == ["new"])
    }
  }

  @Test("members that move to another owner can take the unique value of the deleted owner")
  func uniqueValueOfOwner() throws {
    let container = try ModelContainer.inMemory(Sprig.self)
    let context = ModelContext(container)
    let (root, middle, leaf) = (Sprig("root"), Sprig("middle"), Sprig("leaf"))
    context.insert(root)
    root.children = [middle]
    middle.children = [leaf]
    try context.save()
    leaf.parent = root
    leaf.name = middle.name
    context.delete(middle)
    try context.save()
    for context in [context, ModelContext(container)] {
      let links = try context.all(Sprig.self).map { "\($0.name) in \($0.parent?.name ?? "")" }
      #expect(links.sorted() == ["middle in root", "root in "])
    }
  }

  @Test(
    "members that move to another owner can take a unique value that another change frees before",
    arguments: LinkedFormat.allCases)
  func uniqueValueOfOther(format: LinkedFormat) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      let container = try O.container()
      let context = ModelContext(container)
      let (old, new) = (O("old"), O("new"))
      context.insert(old)
      context.insert(new)
      let (moving, staying) = (O.MemberModel("a"), O.MemberModel("b"))
      old.members = [moving]
      new.members = [staying]
      try context.save()
      staying.name = "c"
      moving.owner = new
      moving.name = "b"
      context.delete(old)
      try context.save()
      for context in [context, ModelContext(container)] {
        #expect(try names(\O.members, of: "new", in: context) == ["b", "c"])
      }
    }
    try check(format.owner)
  }

  @Test(
    "members that move to another owner can get another number among its members",
    arguments: LinkedFormat.allCases)
  func uniqueWithOwner(format: LinkedFormat) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      let container = try O.container()
      let context = ModelContext(container)
      let (old, new) = (O("old"), O("new"))
      context.insert(old)
      context.insert(new)
      let moving = O.TicketModel(1, owner: old, text: "moved")
      context.insert(moving)
      context.insert(O.TicketModel(1, owner: new, text: "there"))
      try context.save()
      moving.owner = new
      moving.number = 2
      context.delete(old)
      try context.save()
      for context in [context, ModelContext(container)] {
        let tickets = try #require(try context.owner("new", O.self)).tickets
        #expect(tickets.map { "\($0.number) \($0.text)" }.sorted() == ["1 there", "2 moved"])
      }
    }
    try check(format.owner)
  }

  @Test(
    "a member that another context moves survives the deletion of its former owner too",
    arguments: LinkedFormat.allCases)
  func moveElsewhere(format: LinkedFormat) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      let container = try O.container()
      let (first, second) = (ModelContext(container), ModelContext(container))
      let (old, new) = (O("old"), O("new"))
      first.insert(old)
      first.insert(new)
      old.members = [O.MemberModel("a"), O.MemberModel("b")]
      try first.save()
      let doomed = try #require(try second.owner("old", O.self))
      #expect(doomed.members.count == 2)
      second.delete(doomed)
      old.members.first { $0.name == "a" }?.owner = new
      try first.save()
      try second.save()
      let links = try container.read { context in
        try context.all(O.MemberModel.self).map { "\($0.name) \($0.owner?.name ?? "")" }
      }
      #expect(links == ["a new"])
    }
    try check(format.owner)
  }

  @Test(
    "an owner that is inserted again after its deletion keeps the changes from both sides",
    arguments: LinkedFormat.allCases)
  func undeleted(format: LinkedFormat) throws {
    func check<O: LinkedOwner>(_ type: O.Type) throws {
      let container = try O.container()
      let context = ModelContext(container)
      let (old, new) = (O("old"), O("new"))
      context.insert(old)
      context.insert(new)
      old.members = [O.MemberModel("a"), O.MemberModel("b")]
      old.badge = O.BadgeModel("badge")
      try context.save()
      context.delete(old)
      old.size = 7
      old.members.first { $0.name == "a" }?.owner = new
      old.badge?.owner = new
      context.insert(old)
      try context.save()
      for context in [context, ModelContext(container)] {
        let old = try #require(try context.owner("old", O.self))
        #expect(old.size == 7 && old.members.map(\.name) == ["b"] && old.badge == nil)
        #expect(try context.owner("new", O.self)?.members.map(\.name) == ["a"])
      }
    }
    try check(format.owner)
  }
}

@Model
final class Crate {
  var name: String
  @Relationship(deleteRule: .cascade) var bottles: [Bottle] = []
  init(name: String) { self.name = name }
}

@Model
final class Bottle {
  var name: String
  init(name: String) { self.name = name }
}

@Table("campus")
@Model
final class Campus {
  var name: String
  @Relationship(deleteRule: .cascade, inverse: \Wing.campus) var wings: [Wing] = []
  init(_ name: String) { self.name = name }

  static func container() throws -> ModelContainer {
    try ModelContainer.inMemory(Campus.self, Wing.self, Desk.self)
  }
}

@Table("wing")
@Model
final class Wing {
  var name: String
  var campus: Campus?
  @Relationship(deleteRule: .cascade, inverse: \Desk.wing) var desks: [Desk] = []
  init(_ name: String) { self.name = name }
}

@Table("desk")
@Model
final class Desk {
  var name: String
  var wing: Wing?
  init(_ name: String) { self.name = name }
}

@Table("bureau")
@Model
final class Bureau {
  var name: String
  @Relationship(deleteRule: .deny, inverse: \Clerk.bureau) var clerks: [Clerk] = []
  init(_ name: String) { self.name = name }
}

@Table("clerk")
@Model
final class Clerk {
  var name: String
  var bureau: Bureau?
  @Relationship(deleteRule: .deny, inverse: \Chore.clerk) var chores: [Chore] = []
  init(_ name: String) { self.name = name }
}

@Table("chore")
@Model
final class Chore {
  var name: String
  var clerk: Clerk?
  init(_ name: String) { self.name = name }
}

@Table("sprig")
@Model
final class Sprig {
  @Attribute(.unique) var name: String
  var updates = 0
  var parent: Sprig?
  @Relationship(deleteRule: .cascade, inverse: \Sprig.parent) var children: [Sprig] = []
  init(_ name: String) { self.name = name }
}
