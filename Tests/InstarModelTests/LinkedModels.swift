import Instar

// Models with every kind of relationship, in both formats of a store. Tests that are generic over `LinkedOwner` run
// with either.

protocol LinkedOwner: PersistentModel {
  associatedtype MemberModel: LinkedMember where MemberModel.OwnerModel == Self
  associatedtype TopicModel: LinkedTopic where TopicModel.OwnerModel == Self
  associatedtype BadgeModel: LinkedBadge where BadgeModel.OwnerModel == Self
  associatedtype SealModel: LinkedSeal where SealModel.OwnerModel == Self
  associatedtype TicketModel: LinkedTicket where TicketModel.OwnerModel == Self

  var name: String { get set }
  var size: Int { get set }
  /// Deleted with the owner.
  var members: [MemberModel] { get set }
  /// Kept without the owner.
  var guests: [MemberModel] { get set }
  /// The owner cannot be deleted as long as it has any.
  var wards: [MemberModel] { get set }
  /// Many-to-many, deleted with any of their owners.
  var topics: [TopicModel] { get set }
  /// One-to-one, deleted with the owner.
  var badge: BadgeModel? { get set }
  /// One-to-one, with a required owner.
  var seal: SealModel? { get set }
  /// Members with a required owner.
  var tickets: [TicketModel] { get set }
  init(_ name: String)
}

protocol LinkedMember: PersistentModel {
  associatedtype OwnerModel: LinkedOwner
  associatedtype TagModel: LinkedTag where TagModel.MemberModel == Self

  var name: String { get set }
  var size: Int { get set }
  var owner: OwnerModel? { get set }
  var host: OwnerModel? { get set }
  var guardian: OwnerModel? { get set }
  /// Many-to-many.
  var tags: [TagModel] { get set }
  init(_ name: String)
}

protocol LinkedTag: PersistentModel {
  associatedtype MemberModel: LinkedMember
  var name: String { get set }
  var members: [MemberModel] { get set }
  init(_ name: String)
}

protocol LinkedTopic: PersistentModel {
  associatedtype OwnerModel: LinkedOwner
  var name: String { get set }
  var owners: [OwnerModel] { get set }
  init(_ name: String)
}

protocol LinkedBadge: PersistentModel {
  associatedtype OwnerModel: LinkedOwner
  var name: String { get set }
  var owner: OwnerModel? { get set }
  init(_ name: String)
}

protocol LinkedSeal: PersistentModel {
  associatedtype OwnerModel: LinkedOwner
  var owner: OwnerModel { get set }
  init(owner: OwnerModel)
}

protocol LinkedTicket: PersistentModel {
  associatedtype OwnerModel: LinkedOwner
  var number: Int { get set }
  var text: String { get set }
  var owner: OwnerModel { get set }
  init(_ number: Int, owner: OwnerModel, text: String)
}

/// The format of the store that a test uses.
enum LinkedFormat: CaseIterable {
  case coreData, plain

  var owner: any LinkedOwner.Type {
    switch self {
    case .coreData: CoreDataLinks.Owner.self
    case .plain: PlainLinks.Owner.self
    }
  }
}

extension LinkedOwner {
  /// A container over a store in memory.
  static func container() throws -> ModelContainer {
    try ModelContainer.inMemory(
      Self.self, MemberModel.self, MemberModel.TagModel.self, TopicModel.self, BadgeModel.self,
      SealModel.self, TicketModel.self)
  }
}

extension ModelContainer {
  /// A container over a store in memory.
  static func inMemory(_ models: any PersistentModel.Type...) throws -> ModelContainer {
    try ModelContainer(
      for: Schema(models), configurations: ModelConfiguration(isStoredInMemoryOnly: true))
  }

  /// What a fresh context reads. Models lose their relationships with their context.
  func read<Value>(_ body: (ModelContext) throws -> Value) rethrows -> Value {
    let context = ModelContext(self)
    return try withExtendedLifetime(context) { try body(context) }
  }
}

extension ModelContext {
  /// All models of a class.
  func all<T: PersistentModel>(_ type: T.Type) throws -> [T] { try fetch(FetchDescriptor<T>()) }

  /// The owner with a name.
  func owner<T: LinkedOwner>(_ name: String, _ type: T.Type) throws -> T? {
    try all(type).first { $0.name == name }
  }

  /// The member with a name.
  func member<T: LinkedMember>(_ name: String, _ type: T.Type) throws -> T? {
    try all(type).first { $0.name == name }
  }
}

enum CoreDataLinks {
  @Model
  final class Owner {
    @Attribute(.unique) var name: String
    var size: Int = 0
    @Relationship(deleteRule: .cascade, inverse: \Member.owner) var members: [Member] = []
    @Relationship(deleteRule: .nullify, inverse: \Member.host) var guests: [Member] = []
    @Relationship(deleteRule: .deny, inverse: \Member.guardian) var wards: [Member] = []
    @Relationship(deleteRule: .cascade, inverse: \Topic.owners) var topics: [Topic] = []
    @Relationship(deleteRule: .cascade, inverse: \Badge.owner) var badge: Badge?
    @Relationship(deleteRule: .cascade, inverse: \Seal.owner) var seal: Seal?
    @Relationship(deleteRule: .cascade, inverse: \Ticket.owner) var tickets: [Ticket] = []
    init(_ name: String) { self.name = name }
  }

  @Model
  final class Member {
    @Attribute(.unique) var name: String
    var size: Int = 0
    var owner: Owner?
    var host: Owner?
    var guardian: Owner?
    @Relationship(inverse: \Tag.members) var tags: [Tag] = []
    init(_ name: String) { self.name = name }
  }

  @Model
  final class Tag {
    var name: String
    var members: [Member] = []
    init(_ name: String) { self.name = name }
  }

  @Model
  final class Topic {
    var name: String
    var owners: [Owner] = []
    init(_ name: String) { self.name = name }
  }

  @Model
  final class Badge {
    var name: String
    var owner: Owner?
    init(_ name: String) { self.name = name }
  }

  @Model
  final class Seal {
    var owner: Owner
    init(owner: Owner) { self.owner = owner }
  }

  @Model
  final class Ticket {
    #Unique<Ticket>([\.owner, \.number])
    var number: Int
    var text: String
    var owner: Owner
    init(_ number: Int, owner: Owner, text: String) {
      self.number = number
      self.text = text
      self.owner = owner
    }
  }
}

enum PlainLinks {
  @Table("link_owner")
  @Model
  final class Owner {
    @Attribute(.unique) var name: String
    var size: Int = 0
    @Relationship(deleteRule: .cascade, inverse: \Member.owner) var members: [Member] = []
    @Relationship(deleteRule: .nullify, inverse: \Member.host) var guests: [Member] = []
    @Relationship(deleteRule: .deny, inverse: \Member.guardian) var wards: [Member] = []
    @Relationship(deleteRule: .cascade, inverse: \Topic.owners) var topics: [Topic] = []
    @Relationship(deleteRule: .cascade, inverse: \Badge.owner) var badge: Badge?
    @Relationship(deleteRule: .cascade, inverse: \Seal.owner) var seal: Seal?
    @Relationship(deleteRule: .cascade, inverse: \Ticket.owner) var tickets: [Ticket] = []
    init(_ name: String) { self.name = name }
  }

  @Table("link_member")
  @Model
  final class Member {
    @Attribute(.unique) var name: String
    var size: Int = 0
    var owner: Owner?
    var host: Owner?
    var guardian: Owner?
    @Relationship(inverse: \Tag.members) var tags: [Tag] = []
    init(_ name: String) { self.name = name }
  }

  @Table("link_tag")
  @Model
  final class Tag {
    var name: String
    var members: [Member] = []
    init(_ name: String) { self.name = name }
  }

  @Table("link_topic")
  @Model
  final class Topic {
    var name: String
    var owners: [Owner] = []
    init(_ name: String) { self.name = name }
  }

  @Table("link_badge")
  @Model
  final class Badge {
    var name: String
    var owner: Owner?
    init(_ name: String) { self.name = name }
  }

  @Table("link_seal")
  @Model
  final class Seal {
    var owner: Owner
    init(owner: Owner) { self.owner = owner }
  }

  @Table("link_ticket")
  @Model
  final class Ticket {
    #Unique<Ticket>([\.owner, \.number])
    var number: Int
    var text: String
    var owner: Owner
    init(_ number: Int, owner: Owner, text: String) {
      self.number = number
      self.text = text
      self.owner = owner
    }
  }
}

extension CoreDataLinks.Owner: LinkedOwner {
  typealias MemberModel = CoreDataLinks.Member
  typealias TopicModel = CoreDataLinks.Topic
  typealias BadgeModel = CoreDataLinks.Badge
  typealias SealModel = CoreDataLinks.Seal
  typealias TicketModel = CoreDataLinks.Ticket
}

extension CoreDataLinks.Member: LinkedMember {
  typealias OwnerModel = CoreDataLinks.Owner
  typealias TagModel = CoreDataLinks.Tag
}

extension CoreDataLinks.Tag: LinkedTag {
  typealias MemberModel = CoreDataLinks.Member
}

extension CoreDataLinks.Topic: LinkedTopic {
  typealias OwnerModel = CoreDataLinks.Owner
}

extension CoreDataLinks.Badge: LinkedBadge {
  typealias OwnerModel = CoreDataLinks.Owner
}

extension CoreDataLinks.Seal: LinkedSeal {
  typealias OwnerModel = CoreDataLinks.Owner
}

extension CoreDataLinks.Ticket: LinkedTicket {
  typealias OwnerModel = CoreDataLinks.Owner
}

extension PlainLinks.Owner: LinkedOwner {
  typealias MemberModel = PlainLinks.Member
  typealias TopicModel = PlainLinks.Topic
  typealias BadgeModel = PlainLinks.Badge
  typealias SealModel = PlainLinks.Seal
  typealias TicketModel = PlainLinks.Ticket
}

extension PlainLinks.Member: LinkedMember {
  typealias OwnerModel = PlainLinks.Owner
  typealias TagModel = PlainLinks.Tag
}

extension PlainLinks.Tag: LinkedTag {
  typealias MemberModel = PlainLinks.Member
}

extension PlainLinks.Topic: LinkedTopic {
  typealias OwnerModel = PlainLinks.Owner
}

extension PlainLinks.Badge: LinkedBadge {
  typealias OwnerModel = PlainLinks.Owner
}

extension PlainLinks.Seal: LinkedSeal {
  typealias OwnerModel = PlainLinks.Owner
}

extension PlainLinks.Ticket: LinkedTicket {
  typealias OwnerModel = PlainLinks.Owner
}
