import GRDB
import Instar
import InstarStore
import InstarTestSupport
import Testing

private enum Rooms: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Album.self, Photo.self, Person.self] }

  @Model
  final class Album {
    var name: String
    @Relationship(.ordered, inverse: \Photo.album) var photos: [Photo] = []
    @Relationship(.ordered, inverse: \Person.albums) var people: [Person] = []

    init(name: String) { self.name = name }
  }

  @Model
  final class Photo {
    var name: String
    var album: Album?

    init(name: String) { self.name = name }
  }

  @Model
  final class Person {
    var name: String
    var albums: [Album] = []
    @Relationship(.ownInverse) var friends: [Person] = []
    @Relationship(.ownInverse) var spouse: Person?

    init(name: String) { self.name = name }
  }
}

@Suite("Ordered relationships, and those that are their own inverse")
struct OrderedRelationshipTests {
  private typealias Album = Rooms.Album
  private typealias Photo = Rooms.Photo
  private typealias Person = Rooms.Person

  private func container(_ path: String) throws -> ModelContainer {
    try ModelContainer(
      for: Schema(versionedSchema: Rooms.self),
      configurations: ModelConfiguration(url: URL(filePath: path)))
  }

  private func album(in context: ModelContext) throws -> Album {
    try #require(try context.fetch(FetchDescriptor<Album>()).first)
  }

  @Test("models come back in the order they were given, from either kind of table")
  func order() throws {
    let folder = try TemporaryFolder()
    let container = try container(folder.path("a.store"))
    let context = ModelContext(container)
    let album = Album(name: "A")
    context.insert(album)
    album.photos = ["c", "a", "b"].map { Photo(name: $0) }
    album.people = ["z", "x", "y"].map { Person(name: $0) }
    try context.save()

    let second = ModelContext(container)
    let read = try self.album(in: second)
    #expect(read.photos.map(\.name) == ["c", "a", "b"])
    #expect(read.people.map(\.name) == ["z", "x", "y"])
    // Another order of the same models is a change.
    read.photos = read.photos.sorted { $0.name < $1.name }
    read.people.swapAt(0, 2)
    try second.save()

    let third = ModelContext(container)
    let again = try self.album(in: third)
    #expect(again.photos.map(\.name) == ["a", "b", "c"])
    #expect(again.people.map(\.name) == ["y", "x", "z"])
    // One that comes from the other side is the last.
    let late = Photo(name: "0")
    third.insert(late)
    late.album = again
    try third.save()
    let fourth = ModelContext(container)
    #expect(try self.album(in: fourth).photos.map(\.name) == ["a", "b", "c", "0"])
    var descriptor = FetchDescriptor<Album>()
    descriptor.relationshipKeyPathsForPrefetching = [\.photos, \.people]
    let fifth = ModelContext(container)
    let fetched = try #require(try fifth.fetch(descriptor).first)
    #expect(fetched.photos.map(\.name) == ["a", "b", "c", "0"])
    #expect(fetched.people.map(\.name) == ["y", "x", "z"])
    #expect(!fifth.hasChanges)
    try container.close()
    let places = try StoreReader.withReadOnlyStore(folder.path("a.store")) {
      try Int.fetchAll($0, sql: "SELECT Z_FOK_ALBUM FROM ZPHOTO ORDER BY Z_FOK_ALBUM")
    }
    #expect(places == [2048, 4096, 6144, 8192])
  }

  @Test("of a relationship that is its own inverse both directions are stored, and go together")
  func ownInverse() throws {
    let folder = try TemporaryFolder()
    let path = folder.path("a.store")
    let container = try container(path)
    let context = ModelContext(container)
    let people = ["a", "b", "c"].map { Person(name: $0) }
    for person in people { context.insert(person) }
    people[0].friends = [people[1], people[2]]
    people[0].spouse = people[1]
    #expect(people[1].friends.map(\.name) == ["a"])
    #expect(people[1].spouse === people[0])
    try context.save()
    func links() throws -> [String] {
      let queue = try DatabaseQueue(path: path)
      defer { try? queue.close() }
      return try queue.read {
        try String.fetchAll(
          $0, sql: "SELECT Z_2FRIENDS || ' ' || REFLEXIVE FROM Z_2FRIENDS ORDER BY 1")
      }
    }
    #expect(try links() == ["1 2", "1 3", "2 1", "3 1"])

    let second = ModelContext(container)
    let read = try second.fetch(FetchDescriptor<Person>(sortBy: [SortDescriptor(\.name)]))
    #expect(read[2].friends.map(\.name) == ["a"])
    #expect(read[0].spouse === read[1])
    read[2].friends = []
    read[1].spouse = nil
    try second.save()
    #expect(try links() == ["1 2", "2 1"])
    #expect(read[0].spouse == nil)
    second.delete(read[0])
    try second.save()
    #expect(try links() == [])
    try container.close()
  }
}
