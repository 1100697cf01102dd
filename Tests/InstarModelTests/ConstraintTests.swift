import GRDB
import Instar
import InstarTestSupport
import Testing

enum Registry {
  @Model
  final class Person {
    #Unique<Person>([\.number], [\.givenName, \.familyName])
    #Index<Person>([\.familyName], [\.familyName, \.number])
    #Index<Person>(.binary([\.town]), .rtree([\.town]))
    var number: Int
    var givenName: String
    var familyName: String?
    var town: String = ""

    init(number: Int, givenName: String, familyName: String?) {
      self.number = number
      self.givenName = givenName
      self.familyName = familyName
    }
  }

  #if canImport(Instar)
    @Model(originalName: "Gauge")
  #endif
  final class Metric {
    #Unique<Metric>([\.name])
    @Attribute(originalName: "label") var name: String

    init(name: String) { self.name = name }
  }

  @Model
  final class Team {
    var name: String
    @Relationship(minimumModelCount: 1, maximumModelCount: 2, inverse: \Member.team)
    var members: [Member] = []
    init(name: String) { self.name = name }
  }

  @Model
  final class Member {
    var name: String = ""
    var team: Team?
    init() {}
  }

  @Model
  final class Wrong {
    #Unique<Wrong>([\.shout])
    var name: String = ""
    var shout: String { name.uppercased() }
    init() {}
  }
}

@Suite("Unique groups and indexes")
struct ConstraintTests {
  typealias Person = Registry.Person

  @Test("constraints of a class that '#if' makes a model are described with it")
  func conditional() throws {
    let entity = try #require(Schema([Registry.Metric.self]).entity(for: Registry.Metric.self))
    #expect(entity.uniquenessConstraints == [["name"]])
    #expect(entity.attributes.map(\.originalName) == ["label"])
    #expect(entity.originalName == "Gauge")
  }

  @Test("unique groups and indexes are indexes of the store, under Core Data's names")
  func indexes() throws {
    let folder = try TemporaryFolder()
    let path = folder.path("a.store")
    try ModelContainer(
      for: Person.self, configurations: ModelConfiguration(url: URL(filePath: path))
    ).close()
    let statements = try DatabaseQueue(path: path).read { db in
      try String.fetchAll(
        db,
        sql: "SELECT sql FROM sqlite_schema WHERE type = 'index' AND tbl_name GLOB 'Z*'")
    }
    #expect(
      statements == [
        "CREATE INDEX Z_Person_SwiftDataIndexOnBinaryfamilyName ON ZPERSON (ZFAMILYNAME COLLATE BINARY ASC)",
        "CREATE INDEX Z_Person_SwiftDataIndexOnBinaryfamilyNamenumber ON ZPERSON (ZFAMILYNAME COLLATE BINARY ASC, ZNUMBER COLLATE BINARY ASC)",
        "CREATE INDEX Z_Person_SwiftDataIndexOnBinarytown ON ZPERSON (ZTOWN COLLATE BINARY ASC)",
        "CREATE UNIQUE INDEX Z_Person_UNIQUE_number ON ZPERSON (ZNUMBER COLLATE BINARY ASC)",
        "CREATE UNIQUE INDEX Z_Person_UNIQUE_givenName_familyName ON ZPERSON (ZGIVENNAME COLLATE BINARY ASC, ZFAMILYNAME COLLATE BINARY ASC)",
      ])
  }

  @Test(
    "inserting a group of values that exists updates that row; a missing value is equal to none")
  func upsert() throws {
    let container = try ModelContainer(
      for: Person.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
    let context = ModelContext(container)
    context.insert(Person(number: 1, givenName: "Ada", familyName: "Lovelace"))
    context.insert(Person(number: 2, givenName: "Ada", familyName: nil))
    context.insert(Person(number: 3, givenName: "Ada", familyName: nil))
    try context.save()
    let other = ModelContext(container)
    other.insert(Person(number: 4, givenName: "Ada", familyName: "Lovelace"))
    try other.save()
    #expect(
      try ModelContext(container).fetch(FetchDescriptor<Person>(sortBy: [SortDescriptor(\.number)]))
        .map(\.number) == [2, 3, 4])
  }

  @Test("a path to what is not stored is refused by name")
  func wrongPath() throws {
    let error = #expect(throws: SwiftDataError.self) {
      try ModelContainer(
        for: Registry.Wrong.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
    }
    #expect(error?.cause?.cause.contains("#Unique of Wrong names") == true)
  }

  @Test("a save with too few or too many members is refused, from whichever side they were changed")
  func counts() throws {
    let container = try ModelContainer(
      for: Registry.Team.self, Registry.Member.self,
      configurations: ModelConfiguration(isStoredInMemoryOnly: true))
    let context = ModelContext(container)
    func expectRefused(_ part: String, in context: ModelContext) {
      let error = #expect(throws: SwiftDataError.self) { try context.save() }
      #expect(SwiftDataError.modelValidationFailure ~= (error ?? SwiftDataError.unknownSchema))
      #expect(error?.cause?.cause == "relationship 'members' has \(part) and must have 1 to 2")
    }
    let team = Registry.Team(name: "a")
    context.insert(team)
    expectRefused("0 models", in: context)
    team.members = [Registry.Member()]
    try context.save()

    // From the other side, in a context that has not read the members.
    let other = ModelContext(container)
    let member = try #require(try other.fetch(FetchDescriptor<Registry.Member>()).first)
    member.team = nil
    expectRefused("0 models", in: other)
    other.rollback()
    other.delete(member)
    expectRefused("0 models", in: other)
    other.rollback()
    for _ in 0..<2 {
      let new = Registry.Member()
      new.team = member.team
      other.insert(new)
    }
    expectRefused("3 models", in: other)
    other.delete(member)
    try other.save()
    #expect(try ModelContext(container).fetchCount(FetchDescriptor<Registry.Member>()) == 2)
  }
}
