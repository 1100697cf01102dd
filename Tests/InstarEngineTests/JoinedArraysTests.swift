import Instar
import InstarChange
import InstarEngine
import InstarSchema
import InstarWire
import Testing

@Suite("Two arrays without inverse", .serialized)
struct JoinedArraysTests {
  private let store: MigratedStore

  init() throws { store = try MigratedStore() }

  /// Songs "a", "b" and "c", and lists "x" and "y".
  ///
  /// - Parameter link: Links them.
  private func make(_ link: ([ApartV1.Song], [ApartV1.List]) -> Void) throws {
    let songs = ["a", "b", "c"].map(ApartV1.Song.init)
    let lists = ["x", "y"].map(ApartV1.List.init)
    let container = try store.open(ApartV1.self)
    let context = ModelContext(container)
    for song in songs { context.insert(song) }
    for list in lists { context.insert(list) }
    link(songs, lists)
    try context.save()
    try container.close()
  }

  private static let links = """
    SELECT s.ZNAME || l.ZNAME FROM Z_2SONGS j JOIN ZSONG s ON s.Z_PK = j.Z_3SONGS \
    JOIN ZLIST l ON l.Z_PK = j.Z_2LISTS ORDER BY 1
    """

  @Test("two arrays without inverse have links of their own, each in a column of the other's rows")
  func columns() throws {
    try make { songs, lists in
      songs[0].lists = lists
      lists[0].songs = [songs[0], songs[1]]
    }
    #expect(try store.read("SELECT ZNAME || Z3LISTS FROM ZLIST ORDER BY 1") == ["x1", "y1"])
    #expect(
      try store.read("SELECT ZNAME || ifnull(Z2SONGS, '-') FROM ZSONG ORDER BY 1")
        == ["a1", "b1", "c-"])
    let container = try store.open(ApartV1.self)
    let context = ModelContext(container)
    let songs = try context.fetch(FetchDescriptor<ApartV1.Song>(sortBy: [SortDescriptor(\.name)]))
    #expect(songs.map { $0.lists.map(\.name).sorted() } == [["x", "y"], [], []])
    songs[2].lists.append(songs[0].lists[0])
    try context.save()
    let otherContext = ModelContext(container)
    let later = try otherContext.fetch(
      FetchDescriptor<ApartV1.Song>(sortBy: [SortDescriptor(\.name)]))
    #expect(later.map(\.lists.count) == [1, 0, 1], "a list is in the array of one song")
    try container.close()
  }

  @Test(
    "two arrays without inverse become one relationship with the links of both",
    arguments: [true, false])
  func joined(isLightweight: Bool) throws {
    try make { songs, lists in
      songs[0].lists = [lists[0]]
      songs[1].lists = [lists[1]]
      lists[0].songs = [songs[0], songs[2]]
    }
    Script.isLightweight = isLightweight
    if !isLightweight {
      Script.didMigrate = { context in
        let songs = try context.fetch(FetchDescriptor<ApartV2.Song>())
        #expect(songs.map(\.lists.count).reduce(0, +) == 3)
      }
    }
    try store.migrate(ApartV1.self, ApartV2.self)
    #expect(try store.read(Self.links) == ["ax", "by", "cx"])
    #expect(try store.notes.isEmpty)
  }

  @Test(
    "two arrays without inverse keep their links without a named stage, by the statements that the plan shows"
  )
  func planned() throws {
    try make { songs, lists in songs[0].lists = lists }
    Script.isLightweight = true
    let migration = try store.plan(ApartV1.self, ApartV2.self)
    let sentences = migration.stages.flatMap(\.changes)
    #expect(
      sentences.contains(
        "makes Song.lists the inverse of List.songs, which has the links of both then"),
      "\(sentences)")
    #expect(
      migration.notes == [
        "in 1.0.0, List.songs and Song.lists are arrays without inverse, so each has links of its own; "
          + "a Song can be in the songs of one List only"
      ])
    let (planned, executed) = try store.statements(ApartV1.self, ApartV2.self)
    #expect(planned == executed)
  }

  @Test(
    "an array whose inverse is new keeps its links; rows that the stage deletes take theirs along")
  func newInverse() throws {
    let people = ["a", "b", "c"].map(CrewV1.Person.init)
    let ship = CrewV1.Ship("x")
    let guest = CrewV1.Guest("d")
    let container = try store.open(CrewV1.self)
    let context = ModelContext(container)
    context.insert(ship)
    ship.crew = people + [guest]
    people[0].friends = [people[1]]
    people[1].admirers = [people[2]]
    try context.save()
    try container.close()
    Script.losses = ["Ship.crew"]
    try store.migrate(CrewV1.self, CrewV2.self)
    let migrated = try store.open(CrewV2.self)
    let crewContext = ModelContext(migrated)
    let crew = try crewContext.fetch(
      FetchDescriptor<CrewV2.Person>(sortBy: [SortDescriptor(\.name)]))
    #expect(crew.map(\.name) == ["a", "b", "c"])
    #expect(crew.map { $0.ships.map(\.name) } == [["x"], ["x"], ["x"]])
    #expect(crew.map { $0.friends.map(\.name) } == [["b"], [], ["b"]])
    #expect(crew.map { $0.admirers.map(\.name).sorted() } == [[], ["a", "c"], []])
    try migrated.close()
    #expect(try store.read("SELECT count(*) || '' FROM Z_2SHIPS") == ["3"])
  }

  @Test("an inverse that is taken away needs code")
  func apartAgain() throws {
    let schemas = [ApartV2.self, ApartV3.self] as [any VersionedSchema.Type]
    let difference = SchemaDifference(
      from: Schema(versionedSchema: schemas[0]), to: Schema(versionedSchema: schemas[1]))
    #expect(
      difference.changes.compactMap(\.reasonForCustomStage) == [
        "links of List.songs must be set again", "links of Song.lists must be set again",
      ])
  }

  @Test("code sets the links of both arrays again in ordinary tables")
  func tables() throws {
    let difference = SchemaDifference(
      from: Schema(versionedSchema: ApartV1.self), to: Schema(versionedSchema: ApartV2.self))
    #expect(
      difference.linksToMoveBetweenTables == [
        "links of List.songs must be set again", "links of Song.lists must be set again",
      ])
  }
}

private enum ApartV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Song.self, List.self, Album.self] }

  @Model final class Song {
    var name: String
    var lists: [List] = []
    init(_ name: String) { self.name = name }
  }

  @Model final class List {
    var name: String
    var songs: [Song] = []
    init(_ name: String) { self.name = name }
  }

  @Model final class Album {
    var name: String
    init(_ name: String) { self.name = name }
  }
}

private enum ApartV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Song.self, List.self, Album.self] }

  @Model final class Song {
    var name: String
    @Relationship(inverse: \List.songs) var lists: [List] = []
    init(_ name: String) { self.name = name }
  }

  @Model final class List {
    var name: String
    var songs: [Song] = []
    init(_ name: String) { self.name = name }
  }

  @Model final class Album {
    var name: String
    init(_ name: String) { self.name = name }
  }
}

private enum ApartV3: VersionedSchema {
  static let versionIdentifier = Schema.Version(3, 0, 0)
  static var models: [any PersistentModel.Type] {
    [ApartV1.Song.self, ApartV1.List.self, ApartV1.Album.self]
  }
}

private enum CrewV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Ship.self, Person.self, Guest.self] }

  @Model final class Ship {
    var name: String
    var crew: [Person] = []
    init(_ name: String) { self.name = name }
  }

  @Model class Person {
    var name: String
    var friends: [Person] = []
    var admirers: [Person] = []
    init(_ name: String) { self.name = name }
  }

  @Model final class Guest: Person {
    override init(_ name: String) { super.init(name) }
  }
}

private enum CrewV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Ship.self, Person.self, Animal.self] }

  /// Gives the other entities new numbers.
  @Model final class Animal {
    var name: String
    init(_ name: String) { self.name = name }
  }

  @Model final class Ship {
    var name: String
    @Relationship(inverse: \Person.ships) var crew: [Person] = []
    init(_ name: String) { self.name = name }
  }

  @Model final class Person {
    var name: String
    var ships: [Ship] = []
    @Relationship(inverse: \Person.admirers) var friends: [Person] = []
    var admirers: [Person] = []
    init(_ name: String) { self.name = name }
  }
}
