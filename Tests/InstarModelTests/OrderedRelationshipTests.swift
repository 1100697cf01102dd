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

private enum Music: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [List.self, Song.self] }

  @Model
  final class List {
    var name: String
    @Relationship(.ordered, inverse: \Song.lists) var songs: [Song] = []

    init(name: String) { self.name = name }
  }

  @Model
  final class Song {
    var name: String
    @Relationship(.ordered) var lists: [List] = []

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

  @Test("links that are ordered from both sides have their places on both at each save")
  func bothSides() throws {
    let folder = try TemporaryFolder()
    let container = try ModelContainer(
      for: Schema(versionedSchema: Music.self),
      configurations: ModelConfiguration(url: URL(filePath: folder.path("a.store"))))
    func links() throws -> [String] {
      let queue = try DatabaseQueue(path: folder.path("a.store"))
      defer { try? queue.close() }
      return try queue.read { db in
        try String.fetchAll(
          db,
          sql: """
            SELECT l.ZNAME || s.ZNAME || ' ' || ifnull(Z_FOK_2SONGS, '-') || ' '
              || ifnull(Z_FOK_1LISTS, '-')
            FROM Z_1SONGS JOIN ZLIST AS l ON l.Z_PK = Z_1LISTS JOIN ZSONG AS s ON s.Z_PK = Z_2SONGS
            ORDER BY 1
            """)
      }
    }
    let context = ModelContext(container)
    let lists = ["L", "M"].map { Music.List(name: $0) }
    let songs = ["a", "b"].map { Music.Song(name: $0) }
    for list in lists { context.insert(list) }
    lists[0].songs = songs
    lists[1].songs = [songs[1], songs[0]]
    try context.save()
    #expect(
      try links() == ["La 2048 2048", "Lb 4096 2048", "Ma 4096 4096", "Mb 2048 4096"])

    // The other side's own order is another one, and does not touch this one's.
    let second = ModelContext(container)
    let read = try #require(
      try second.fetch(FetchDescriptor<Music.Song>(sortBy: [SortDescriptor(\.name)])).first)
    #expect(read.lists.map(\.name) == ["L", "M"])
    read.lists.swapAt(0, 1)
    try second.save()
    #expect(
      try links() == ["La 2048 4096", "Lb 4096 2048", "Ma 4096 2048", "Mb 2048 4096"])

    // A link from the other side is the last one on this side.
    let third = ModelContext(container)
    let song = Music.Song(name: "c")
    third.insert(song)
    song.lists = try third.fetch(
      FetchDescriptor<Music.List>(sortBy: [SortDescriptor(\.name, order: .reverse)]))
    try third.save()
    #expect(
      try links() == [
        "La 2048 4096", "Lb 4096 2048", "Lc 6144 4096", "Ma 4096 2048", "Mb 2048 4096",
        "Mc 6144 2048",
      ])
    try container.close()
  }

  @Test("many new links of one save follow the links that are there, in the order of their rows")
  func manyLinks() throws {
    let folder = try TemporaryFolder()
    let container = try container(folder.path("a.store"))
    let context = ModelContext(container)
    let albums = ["A", "B"].map { Album(name: $0) }
    for album in albums {
      context.insert(album)
      album.photos = [Photo(name: "\(album.name)-first")]
      album.people = [Person(name: "\(album.name)-first")]
    }
    try context.save()
    for number in 0..<30 {
      let photo = Photo(name: "photo \(number)")
      let person = Person(name: "person \(number)")
      context.insert(photo)
      context.insert(person)
      photo.album = albums[number % 2]
      person.albums = albums
    }
    // It moves from the end of one list to the end of the other.
    let moved = try #require(albums[0].photos.first)
    moved.album = albums[1]
    try context.save()

    let reader = ModelContext(container)
    let read = try reader.fetch(FetchDescriptor<Album>(sortBy: [SortDescriptor(\.name)]))
    let even = (0..<30).filter { $0 % 2 == 0 }.map { "photo \($0)" }
    let odd = (0..<30).filter { $0 % 2 == 1 }.map { "photo \($0)" }
    #expect(read[0].photos.map(\.name) == even)
    #expect(read[1].photos.map(\.name) == ["B-first", "A-first"] + odd)
    for album in read {
      #expect(
        album.people.map(\.name) == ["\(album.name)-first"] + (0..<30).map { "person \($0)" })
    }
    #expect(!reader.hasChanges)
    try container.close()
  }

  @Test("a relationship that is its own inverse is stored in both directions, and both go together")
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
