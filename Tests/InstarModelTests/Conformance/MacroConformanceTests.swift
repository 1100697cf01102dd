import Instar
import Testing

@Suite("API page: Macros")
struct MacroConformanceTests {
  typealias Album = MacroModels.Album
  typealias Track = MacroModels.Track
  typealias Label = MacroModels.Label
  typealias Singer = MacroModels.Singer

  private let container: ModelContainer
  private let context: ModelContext
  private let schema = Schema(MacroModels.models)

  init() throws {
    container = try ModelContainer(
      for: schema, configurations: ModelConfiguration(isStoredInMemoryOnly: true))
    context = ModelContext(container)
  }

  private func saved(_ name: String = "a", year: Int = 1970, number: Int = 1) throws -> Album {
    let album = Album(uid: name, name: name, year: year, number: number)
    context.insert(album)
    try context.save()
    return album
  }

  private func fromStore() throws -> Album {
    try #require(try ModelContext(container).fetch(FetchDescriptor<Album>()).first)
  }

  @Test("@Model leaves computed properties, methods and several initializers alone")
  func members() throws {
    let (one, two) = (Album(uid: "x"), try saved(year: 1969))
    #expect(two.summary == "a (1969)" && one.older(than: two))
  }

  @Test("@Attribute(.unique) and #Unique: inserting values that exist is an upsert")
  func unique() throws {
    let key = try saved().persistentModelID
    context.insert(Album(uid: "a", name: "b", year: 1, number: 2))
    try context.save()
    context.insert(Album(uid: "z", name: "c", year: 2, number: 2))
    try context.save()
    context.insert(Album(uid: "y", name: "c", year: 2, number: 9))
    try context.save()
    let other = ModelContext(container)
    let albums = try other.fetch(FetchDescriptor<Album>())
    #expect(albums.map(\.persistentModelID) == [key])
    #expect(albums.first?.uid == "y" && albums.first?.number == 9)
  }

  @Test("#Index takes paths, .binary and .rtree")
  func indexes() {
    #expect(schema.entitiesByName["Album"]?.indices == [["name"], ["year", "name"]])
    #expect(schema.entitiesByName["Track"]?.indices == [["name"]])
  }

  @Test(
    "@Attribute(.transformable(by:)) keeps a value of any type, by the transformer's type or name")
  func transformable() throws {
    let album = try saved()
    #expect(album.color == Color(red: 1, green: 2) && album.otherColor == nil)
    album.color = Color(red: 7, green: 8)
    album.otherColor = Color(red: 9, green: 0)
    #expect(context.hasChanges)
    try context.save()
    let found = try fromStore()
    #expect(found.color == Color(red: 7, green: 8) && found.otherColor == Color(red: 9, green: 0))
    let attributes = try #require(schema.entitiesByName["Album"]?.attributesByName)
    #expect(attributes["color"]?.isTransformable == true)
    #expect(attributes["color"]?.options == attributes["otherColor"]?.options)
    #expect(attributes["name"]?.isTransformable == false)
  }

  @Test("@Attribute(.codable) keeps a struct whole")
  func codable() throws {
    let album = try saved()
    album.size = MacroModels.Size(width: 3, height: 4)
    try context.save()
    #expect(try fromStore().size == MacroModels.Size(width: 3, height: 4))
    #expect(schema.entitiesByName["Album"]?.attributesByName["size"]?.type == .codable)
  }

  @Test("@Attribute(.ephemeral) and @Transient are not stored")
  func ephemeral() throws {
    let album = try saved()
    (album.position, album.isOpen) = (9, true)
    try context.save()
    let found = try fromStore()
    #expect(found.position == 3 && !found.isOpen)
    #expect(schema.entitiesByName["Album"]?.storedPropertiesByName["isOpen"] == nil)
  }

  @Test("the options that only Apple's platforms act on are accepted, and keep the value")
  func acceptedOptions() throws {
    let album = try saved()
    album.cover = Data(repeating: 5, count: 200_000)
    (album.title, album.secret) = ("t", "s")
    try context.save()
    let found = try fromStore()
    #expect(found.cover?.count == 200_000 && found.title == "t" && found.secret == "s")
  }

  @Test("originalName and hashModifier are in the schema")
  func names() throws {
    let album = try #require(schema.entitiesByName["Album"])
    #expect(album.attributesByName["secret"]?.originalName == "memo")
    #expect(album.attributesByName["secret"]?.hashModifier == "v2")
    #expect(album.relationshipsByName["singers"]?.originalName == "artists")
  }

  @Test("@Relationship(deleteRule:): cascade, deny and nullify run on save")
  func deleteRules() throws {
    let album = try saved()
    album.tracks = [Track(name: "one"), Track(name: "two")]
    album.label = Label(name: "l")
    try context.save()
    context.delete(album)
    #expect(throws: SwiftDataError.self) { try context.save() }
    context.rollback()
    album.label = nil
    context.delete(album)
    try context.save()
    #expect(try context.fetchCount(FetchDescriptor<Track>()) == 0)
    #expect(try context.fetchCount(FetchDescriptor<Label>()) == 1)
  }

  @Test("@Relationship(inverse:) on one side keeps both in step")
  func inverse() throws {
    let album = try saved()
    let track = Track(name: "one")
    context.insert(track)
    track.album = album
    #expect(album.tracks == [track])
    album.tracks = []
    #expect(track.album == nil)
  }

  @Test("@Relationship(maximumModelCount:) is checked on save")
  func counts() throws {
    let album = try saved()
    album.singers = ["a", "b", "c"].map { Singer(name: $0) }
    let error = #expect(throws: SwiftDataError.self) { try context.save() }
    #expect(SwiftDataError.modelValidationFailure ~= (error ?? SwiftDataError.unknownSchema))
    album.singers.removeLast()
    try context.save()
  }

  @Test("@Relationship(.unique): a model is referred to by one other only")
  func uniqueRelationship() throws {
    let singer = Singer(name: "s")
    let (one, two) = (Label(name: "one"), Label(name: "two"))
    one.owner = singer
    context.insert(one)
    try context.save()
    two.owner = singer
    context.insert(two)
    try context.save()
    let labels = try ModelContext(container).fetch(FetchDescriptor<Label>())
    #expect(labels.map(\.name) == ["two"])
    #expect(schema.entitiesByName["Label"]?.relationshipsByName["owner"]?.options == [.unique])
  }
}
