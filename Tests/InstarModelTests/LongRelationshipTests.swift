import GRDB
import Instar
import InstarTestSupport
import Testing

@Suite("Relationships with many members")
struct LongRelationshipTests {
  private typealias Note = Library.Note
  private typealias Tag = Library.Tag

  private static func withoutRepetition(_ notes: [Note]) -> [Note] {
    notes.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
  }

  @Test(
    "links made and removed from both sides leave the members that a plain list has, in its order")
  func randomLinks() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var generator = SeededGenerator(seed: seed)
    let container = try Library.container()
    let context = ModelContext(container)
    let tag = Tag(name: "tag")
    context.insert(tag)
    let notes = (0..<60).map { Note(uid: "\($0)") }
    notes.forEach { context.insert($0) }
    var expected: [Note] = []
    for step in 0..<1_000 {
      let note = notes[Int.random(in: 0..<notes.count, using: &generator)]
      let isMember = expected.contains(note)
      switch Int.random(in: 0..<9, using: &generator) {
      case 0, 1:
        note.tags = [tag]
        if !isMember { expected.append(note) }
      case 2:
        note.tags = []
        expected.removeAll { $0 === note }
      case 3:
        tag.notes.append(note)
        if !isMember { expected.append(note) }
      case 6:
        // Nobody reads the array in between.
        let others = notes.shuffled(using: &generator).prefix(3)
        for other in others { tag.notes.append(other) }
        tag.notes += [note, note]
        expected = Self.withoutRepetition(expected + others + [note])
      case 7:
        tag.notes.append(contentsOf: notes.suffix(2))
        note.tags = []
        tag.notes.append(note)
        expected += notes.suffix(2).filter { !expected.contains($0) }
        expected = expected.filter { $0 !== note } + [note]
      case 4 where !expected.isEmpty:
        let position = Int.random(in: 0..<expected.count, using: &generator)
        tag.notes.remove(at: position)
        expected.remove(at: position)
      case 5:
        let position = Int.random(in: 0...expected.count, using: &generator)
        tag.notes.insert(note, at: position)
        expected.insert(note, at: position)
        expected = Self.withoutRepetition(expected)
      case 8:
        let start = Int.random(in: 0...expected.count, using: &generator)
        let end = Int.random(in: start...expected.count, using: &generator)
        let others = notes.shuffled(using: &generator).prefix(3)
        tag.notes.replaceSubrange(start..<end, with: others)
        expected.replaceSubrange(start..<end, with: others)
        expected = Self.withoutRepetition(expected)
      default:
        tag.notes.shuffle(using: &generator)
        expected = tag.notes
      }
      #expect(note.tags.contains(tag) == expected.contains(note), "seed \(seed), step \(step)")
      if step % 50 == 0 { try context.save() }
      #expect(tag.notes == expected, "seed \(seed), step \(step)")
    }
    try context.save()
    let reader = ModelContext(container)
    let stored = try #require(try reader.fetch(FetchDescriptor<Tag>()).first)
    #expect(Set(stored.notes.map(\.uid)) == Set(expected.map(\.uid)), "seed \(seed)")
    #expect(!reader.hasChanges)
  }

  @Test("a model that is assigned twice is a member once")
  func repetition() throws {
    let context = ModelContext(try Library.container())
    let tag = Tag(name: "tag")
    context.insert(tag)
    let notes = (0..<40).map { Note(uid: "\($0)") }
    tag.notes = notes + notes
    #expect(tag.notes == notes)
    tag.notes = [notes[39]] + notes
    #expect(tag.notes == [notes[39]] + notes.dropLast())
    tag.notes.append(notes[3])
    #expect(tag.notes.count == 40)
    #expect(notes.allSatisfy { $0.tags == [tag] })
  }

  @Test("a link that the table of links has twice is one member")
  func repeatedLink() throws {
    let folder = try TemporaryFolder()
    let queue = try DatabaseQueue(path: folder.path("a.db"))
    try queue.write { db in
      try db.execute(
        sql: """
          CREATE TABLE list (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
          CREATE TABLE song (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
          CREATE TABLE list_song (list_id INTEGER REFERENCES list, song_id INTEGER REFERENCES song);
          INSERT INTO list VALUES (1, 'l'); INSERT INTO song VALUES (1, 'a'), (2, 'b');
          INSERT INTO list_song VALUES (1, 1), (1, 2), (1, 1);
          """)
    }
    try queue.close()
    let container = try ModelContainer(
      for: Schema(versionedSchema: Playlists.self),
      configurations: ModelConfiguration(url: URL(filePath: folder.path("a.db"))))
    let context = ModelContext(container)
    let list = try #require(try context.fetch(FetchDescriptor<Playlists.List>()).first)
    #expect(list.songs.map(\.name) == ["a", "b"])
    list.songs.removeFirst()
    try context.save()
    let reader = ModelContext(container)
    let second = try #require(try reader.fetch(FetchDescriptor<Playlists.List>()).first)
    #expect(second.songs.map(\.name) == ["b"])
    #expect(!reader.hasChanges)
    try container.close()
  }

  @Test("a new model that takes the row of a member is linked once, also in a table without a key")
  func memberTakenOver() throws {
    let folder = try TemporaryFolder()
    let queue = try DatabaseQueue(path: folder.path("a.db"))
    try queue.write { db in
      try db.execute(
        sql: """
          CREATE TABLE album (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
          CREATE TABLE track (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
          CREATE TABLE album_track (album_id INTEGER REFERENCES album, track_id INTEGER REFERENCES track);
          INSERT INTO album VALUES (1, 'l'); INSERT INTO track VALUES (1, 'a'), (2, 'b');
          INSERT INTO album_track VALUES (1, 1), (1, 2);
          """)
    }
    let container = try ModelContainer(
      for: Schema(versionedSchema: Albums.self),
      configurations: ModelConfiguration(url: URL(filePath: folder.path("a.db"))))
    let context = ModelContext(container)
    let album = try #require(try context.fetch(FetchDescriptor<Albums.Album>()).first)
    #expect(album.tracks.count == 2)
    album.tracks = [Albums.Track(id: 0, name: "a")]
    try context.save()
    #expect(album.tracks.map(\.id) == [1])
    let links = try queue.read { db in
      try Int.fetchAll(db, sql: "SELECT track_id FROM album_track WHERE album_id = 1")
    }
    #expect(links == [1])
    try container.close()
    try queue.close()
  }
}

private enum Albums: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Album.self, Track.self] }

  @Table("album")
  @Model final class Album {
    var id: Int
    var name: String
    @Column(.junction("album_track", own: "album_id", other: "track_id"))
    @Relationship(.withoutInverse) var tracks: [Track] = []
    init(id: Int, name: String) {
      self.id = id
      self.name = name
    }
  }

  @Table("track")
  @Model final class Track {
    var id: Int
    @Attribute(.unique) var name: String
    init(id: Int, name: String) {
      self.id = id
      self.name = name
    }
  }
}

private enum Playlists: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [List.self, Song.self] }

  @Table("list")
  @Model final class List {
    var id: Int
    var name: String
    @Column(.junction("list_song", own: "list_id", other: "song_id"))
    @Relationship(inverse: \Song.lists) var songs: [Song] = []
    init(id: Int, name: String) {
      self.id = id
      self.name = name
    }
  }

  @Table("song")
  @Model final class Song {
    var id: Int
    var name: String
    var lists: [List] = []
    init(id: Int, name: String) {
      self.id = id
      self.name = name
    }
  }
}
