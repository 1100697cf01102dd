import Instar
import Testing

@Suite("Notices of saves", .serialized)
struct SaveNoticeTests {
  @Model
  final class Entry {
    var text: String
    init(_ text: String) { self.text = text }
  }

  @Model
  final class Album {
    @Relationship(deleteRule: .cascade, inverse: \Photo.album) var photos: [Photo] = []
    @Relationship(inverse: \Frame.album) var frames: [Frame] = []
    init() {}
  }

  @Model
  final class Photo {
    var number: Int
    var album: Album?
    init(_ number: Int) { self.number = number }
  }

  @Model
  final class Frame {
    var album: Album?
    init() {}
  }

  /// What was posted of one context.
  final class Heard: @unchecked Sendable {
    private(set) var names: [Notification.Name] = []
    private(set) var last: [String: [PersistentIdentifier]] = [:]
    private var tokens: [any NSObjectProtocol] = []

    init(_ context: ModelContext) {
      for name in [ModelContext.willSave, ModelContext.didSave] {
        tokens.append(
          NotificationCenter.default.addObserver(forName: name, object: context, queue: nil) {
            [unowned self] notification in
            names.append(notification.name)
            last = notification.userInfo as? [String: [PersistentIdentifier]] ?? [:]
          })
      }
    }

    deinit { for token in tokens { NotificationCenter.default.removeObserver(token) } }

    subscript(key: ModelContext.NotificationKey) -> [PersistentIdentifier]? { last[key.rawValue] }
  }

  @Test("notices of saves tell the identifiers of what was inserted, changed and deleted")
  func identifiers() throws {
    let context = ModelContext(
      try ModelContainer(
        for: Entry.self, configurations: ModelConfiguration(isStoredInMemoryOnly: true)))
    let heard = Heard(context)
    let (one, two) = (Entry("one"), Entry("two"))
    context.insert(one)
    context.insert(two)
    try context.save()
    #expect(heard.names == [ModelContext.willSave, ModelContext.didSave])
    #expect(heard[.insertedIdentifiers] == [one.persistentModelID, two.persistentModelID])
    let gone = two.persistentModelID
    one.text = "changed"
    context.delete(two)
    try context.save()
    #expect(heard[.insertedIdentifiers] == [])
    #expect(heard[.updatedIdentifiers] == [one.persistentModelID])
    #expect(heard[.deletedIdentifiers] == [gone])
    try context.save()
    #expect(heard.names.count == 4)
  }

  @Test("notices of saves tell what delete rules delete and change")
  func deleteRules() throws {
    let context = ModelContext(
      try ModelContainer(
        for: Album.self, Photo.self, Frame.self,
        configurations: ModelConfiguration(isStoredInMemoryOnly: true)))
    let (album, frame) = (Album(), Frame())
    album.photos = (0..<10).map { Photo($0) }
    album.frames = [frame]
    context.insert(album)
    try context.save()
    let gone = Set(album.photos.map(\.persistentModelID) + [album.persistentModelID])
    let heard = Heard(context)
    context.delete(album)
    try context.save()
    #expect(Set(heard[.deletedIdentifiers] ?? []) == gone && gone.count == 11)
    #expect(heard[.updatedIdentifiers] == [frame.persistentModelID])
    #expect(heard[.insertedIdentifiers] == [])
  }
}
