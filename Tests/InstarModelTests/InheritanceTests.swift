import Instar
import InstarModel
import InstarStore
import Testing

private typealias Region = Atlas.Region
private typealias Country = Atlas.Country
private typealias Province = Atlas.Province
private typealias IslandProvince = Atlas.IslandProvince
private typealias Place = Atlas.Place

@Suite("models that inherit from models")
struct InheritanceTests {
  let container: ModelContainer
  let context: ModelContext

  init() throws {
    container = try Atlas.container()
    context = ModelContext(container)
  }

  /// What is in the store, seen by a context that knows nothing yet.
  private func others() -> ModelContext { ModelContext(container) }

  private func integer(_ sql: String) throws -> Int64? {
    try container.connection.perform { try $0.integer(sql) }
  }

  private func fill() throws {
    let denmark = Country(name: "Danmark", code: "DK", capital: "København")
    denmark.population = 5_900_000
    let funen = IslandProvince(name: "Fyn", islands: ["Fyn", "Langeland"])
    funen.country = denmark
    context.insert(denmark)
    context.insert(funen)
    context.insert(Province(name: "Jylland", number: 4, country: denmark))
    context.insert(Region(name: "Norden"))
    context.insert(Place(name: "Odense", region: funen))
    context.insert(Place(name: "Aarhus"))
    try context.save()
  }

  @Test("models that inherit from models keep the values that the initializers of each class set")
  func initializers() {
    let country = Country(name: "Norge", code: "NO")
    #expect(country.name == "Norge")
    #expect(country.code == "NO")
    #expect(country.capital == "unknown")
    country.name = "Noreg"
    #expect(country.describe() == "country Noreg, capital unknown")
    #expect(IslandProvince(name: "Fyn", islands: ["Fyn"]).description == "1 islands")
  }

  @Test("a fetch of the superclass returns models as instances of their own classes")
  func fetchOfSuperclass() throws {
    try fill()
    let regions = try others().fetch(FetchDescriptor<Region>(sortBy: [SortDescriptor(\.name)]))
    #expect(regions.map(\.name) == ["Danmark", "Fyn", "Jylland", "Norden"])
    #expect(
      regions.map { "\(type(of: $0))" } == ["Country", "IslandProvince", "Province", "Region"])
    #expect((regions[0] as? Country)?.population == 5_900_000)
    #expect((regions[1] as? IslandProvince)?.islands == ["Fyn", "Langeland"])
    #expect((regions[2] as? Province)?.number == 4)
    #expect(regions[0].describe() == "country Danmark, capital København")
  }

  @Test("a fetch finds the models of its own class, and of no sibling's")
  func fetchOfSubclass() throws {
    try fill()
    let context = others()
    #expect(try context.fetch(FetchDescriptor<Country>()).map(\.name) == ["Danmark"])
    #expect(try context.fetchCount(FetchDescriptor<Province>()) == 2)
    #expect(try context.fetchCount(FetchDescriptor<IslandProvince>()) == 1)
    #expect(try context.fetchCount(FetchDescriptor<Region>()) == 4)
    let identifiers = try context.fetchIdentifiers(FetchDescriptor<Region>())
    #expect(
      Set(identifiers.map(\.entityName)) == ["Country", "IslandProvince", "Province", "Region"])
    let names = identifiers.compactMap { (context.model(for: $0) as? Region)?.name }
    #expect(Set(names) == ["Danmark", "Fyn", "Jylland", "Norden"])
  }

  @Test("a model is one object, whichever class it is fetched by")
  func uniquing() throws {
    try fill()
    let context = others()
    let country = try #require(try context.fetch(FetchDescriptor<Country>()).first)
    let region = try context.fetch(FetchDescriptor<Region>()).first { $0.name == "Danmark" }
    #expect(country === region)
    let island = try #require(try context.fetch(FetchDescriptor<IslandProvince>()).first)
    #expect(try context.fetch(FetchDescriptor<Province>()).contains { $0 === island })
  }

  @Test("models are sorted and matched by inherited properties and by their own")
  func predicates() throws {
    try fill()
    let context = others()
    let byInherited = FetchDescriptor<Country>(
      predicate: #Predicate { $0.name.starts(with: "D") && $0.population > 5_000_000 },
      sortBy: [SortDescriptor(\.name), SortDescriptor(\.capital)])
    #expect(try context.fetch(byInherited).map(\.capital) == ["København"])
    let byCountry = FetchDescriptor<Province>(
      predicate: #Predicate { $0.country?.name == "Danmark" }, sortBy: [SortDescriptor(\.name)])
    #expect(try context.fetch(byCountry).map(\.name) == ["Fyn", "Jylland"])
    let places = FetchDescriptor<Place>(predicate: #Predicate { $0.region?.name == "Fyn" })
    #expect(try context.fetch(places).map(\.name) == ["Odense"])
  }

  @Test("predicates tell models apart by 'is' and 'as?', as Foundation does")
  func casts() throws {
    try fill()
    for context in [others(), context] {
      let provinces = FetchDescriptor<Region>(
        predicate: #Predicate { $0 is Atlas.Province }, sortBy: [SortDescriptor(\.name)])
      #expect(try context.fetch(provinces).map(\.name) == ["Fyn", "Jylland"])
      let large = #Predicate<Atlas.Region> {
        if let country = $0 as? Atlas.Country { country.population > 1_000 } else { false }
      }
      #expect(try context.fetch(FetchDescriptor(predicate: large)).map(\.name) == ["Danmark"])
      let islands = FetchDescriptor<Place>(
        predicate: #Predicate { place in
          place.region.flatMap { ($0 as? Atlas.Province)?.country?.capital } == "København"
        })
      #expect(try context.fetch(islands).map(\.name) == ["Odense"])
      context.insert(Place(name: "pending"))
    }
  }

  @Test(
    "models that inherit from models stand at the other end of a relationship to their superclass")
  func relationships() throws {
    try fill()
    let context = others()
    let odense = try #require(
      try context.fetch(FetchDescriptor<Place>(predicate: #Predicate { $0.name == "Odense" })).first
    )
    let funen = try #require(odense.region as? IslandProvince)
    #expect(funen.islands == ["Fyn", "Langeland"])
    #expect(funen.places.map(\.name) == ["Odense"])
    #expect(funen.country?.provinces.count == 2)
    #expect(funen.country?.provinces.contains { $0 === funen } == true)

    let prefetching = others()
    var descriptor = FetchDescriptor<Place>(predicate: #Predicate { $0.region != nil })
    descriptor.relationshipKeyPathsForPrefetching = [\.region]
    #expect(try prefetching.fetch(descriptor).first?.region is IslandProvince)
  }

  @Test(
    "models that inherit from models keep an inherited relationship in step with the one that names it as its inverse"
  )
  func inheritedInverse() throws {
    let container = try Archive.container()
    let context = ModelContext(container)
    let letter = Archive.Letter(title: "a")
    let other = Archive.Letter(title: "b")
    let map = Archive.Attachment(name: "map", letter: letter)
    let word = Archive.Keyword(word: "sea")
    context.insert(map)
    context.insert(other)
    other.keywords = [word]
    #expect(letter.attachments.map(\.name) == ["map"])
    #expect(word.letters.map(\.title) == ["b"])
    try context.save()
    other.attachments.append(map)
    letter.keywords.append(word)
    #expect(map.letter === other && letter.attachments.isEmpty)
    try context.save()

    let reading = ModelContext(container)
    let letters = try reading.fetch(
      FetchDescriptor<Archive.Letter>(sortBy: [SortDescriptor(\.title)]))
    #expect(letters.map { $0.attachments.map(\.name) } == [[], ["map"]])
    #expect(letters.map { $0.keywords.map(\.word) } == [["sea"], ["sea"]])
    let found = try #require(try reading.fetch(FetchDescriptor<Archive.Keyword>()).first)
    #expect(Set(found.letters.map(\.title)) == ["a", "b"])
    let items = try reading.fetch(
      FetchDescriptor<Archive.Item>(predicate: #Predicate { !$0.attachments.isEmpty }))
    #expect(items.map(\.title) == ["b"])
    #expect(
      container.schema.entity(named: "Item")?.relationships.map(\.inverseName) == [
        "letter", "letters",
      ])

    // The type of the other end knows letters only.
    let item = Archive.Item(title: "c")
    item.attachments = [Archive.Attachment(name: "note")]
    context.insert(item)
    let error = #expect(throws: SwiftDataError.self) { try context.save() }
    #expect(
      error?.description.contains("'letter' references a model of Item") == true, "\(error as Any)")
  }

  @Test("an inverse that cannot be kept in step is refused by name")
  func oneSidedInverse() throws {
    let problems = Schema(OneSided.Album.self, OneSided.Photo.self).modelProblems()
    #expect(
      problems.map(\.cause) == [
        "Photo.cover names Album.photos as its inverse, which is already the inverse of Photo.album"
      ])
    let other = try #require(Schema(OneSided.Shelf.self, OneSided.Book.self).modelProblems().first)
    #expect(other.cause.hasPrefix("the inverse of Shelf.books, "))
    #expect(other.cause.contains("is not a relationship of Book"))
  }

  @Test("models are written with their own entity number, also beside the keys that refer to them")
  func entityNumbers() throws {
    try fill()
    // In this order: Place, Region, Country, Province, IslandProvince.
    #expect(try integer("SELECT Z_ENT FROM ZREGION WHERE ZNAME = 'Danmark'") == 3)
    #expect(try integer("SELECT Z_ENT FROM ZREGION WHERE ZNAME = 'Fyn'") == 5)
    #expect(try integer("SELECT Z_ENT FROM ZREGION WHERE ZNAME = 'Norden'") == 2)
    #expect(try integer("SELECT Z2_REGION FROM ZPLACE WHERE ZNAME = 'Odense'") == 5)
    #expect(
      try integer("SELECT count(*) FROM ZPLACE WHERE Z2_REGION IS NULL AND ZREGION IS NULL") == 1)
    let places = try context.fetch(FetchDescriptor<Place>())
    let odense = try #require(places.first { $0.name == "Odense" })
    odense.region = try context.fetch(FetchDescriptor<Country>()).first
    try context.save()
    #expect(try integer("SELECT Z2_REGION FROM ZPLACE WHERE ZNAME = 'Odense'") == 3)
  }

  @Test(
    "models that inherit from models keep inherited values unique across classes, and their own among their own rows"
  )
  func uniqueness() throws {
    try fill()
    let context = others()
    // An upsert on the superclass's unique name, by another class.
    context.insert(Country(name: "Norden", code: "XN"))
    // Siblings with equal values in different properties are not duplicates.
    context.insert(Country(name: "Sverige", code: "4"))
    context.insert(Province(name: "Skåne", number: 17))
    try context.save()
    #expect(try others().fetchCount(FetchDescriptor<Region>()) == 6)
    let norden = try others().fetch(
      FetchDescriptor<Region>(predicate: #Predicate { $0.name == "Norden" }))
    #expect((norden.first as? Country)?.code == "XN")
  }

  @Test("models are deleted with or without those of subclasses")
  func batchDelete() throws {
    try fill()
    let context = others()
    try context.delete(model: Region.self, includeSubclasses: false)
    try context.save()
    #expect(try others().fetchCount(FetchDescriptor<Region>()) == 3)
    try context.delete(
      model: Region.self, where: #Predicate { $0.name.contains("y") }, includeSubclasses: true)
    try context.save()
    #expect(try others().fetch(FetchDescriptor<Region>()).map(\.name) == ["Danmark"])
    // Odense went with Fyn, by the delete rule that IslandProvince inherits.
    #expect(try others().fetch(FetchDescriptor<Place>()).map(\.name) == ["Aarhus"])
  }

  @Test("models are fetched with pending changes, in parts and in batches")
  func otherFetches() throws {
    try fill()
    context.insert(Country(name: "Island", code: "IS"))
    #expect(try context.fetchCount(FetchDescriptor<Region>()) == 5)
    try context.save()
    var partial = FetchDescriptor<Region>(sortBy: [SortDescriptor(\.name)])
    partial.propertiesToFetch = [\.name]
    let other = others()
    let first = try #require(try other.fetch(partial).first as? Country)
    #expect(first.code == "DK")
    var names: [String] = []
    try others().enumerate(FetchDescriptor<Region>(), batchSize: 2) { region in
      names.append("\(type(of: region))")
    }
    #expect(names.sorted() == ["Country", "Country", "IslandProvince", "Province", "Region"])
    #expect(try others().fetch(FetchDescriptor<Province>(), batchSize: 1).map(\.name).count == 2)
  }

  @Test("models are rolled back to what the store has")
  func rollback() throws {
    try fill()
    let country = try #require(try context.fetch(FetchDescriptor<Country>()).first)
    country.name = "Danemark"
    country.population = 1
    context.rollback()
    #expect(country.name == "Danmark")
    #expect(country.population == 5_900_000)
  }

  @Test(
    "models that inherit from models describe in the schema what they declare themselves, and whom they inherit from"
  )
  func schema() throws {
    let schema = Schema(Atlas.models)
    let country = try #require(schema.entity(for: Country.self))
    #expect(country.superentityName == "Region")
    #expect(country.attributes.map(\.name).sorted() == ["capital", "code", "population"])
    #expect(country.uniquenessConstraints == [["code"]])
    #expect(schema.entity(for: IslandProvince.self)?.superentityName == "Province")
    #expect(schema.entity(for: Region.self)?.superentityName == nil)
  }

  private enum WithoutProvince: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [IslandProvince.self] }
  }

  @Test(
    "models that inherit from models bring along their superclass, in a version and in a list of models"
  )
  func superclass() {
    for schema in [Schema(versionedSchema: WithoutProvince.self), Schema([IslandProvince.self])] {
      #expect(schema.entity(for: Province.self) != nil)
      #expect(schema.modelProblems().isEmpty)
    }
  }
}
