import Instar

enum Atlas {
  @Model class Region {
    @Attribute(.unique) var name: String
    var area: Double?
    @Relationship(deleteRule: .cascade, inverse: \Place.region) var places: [Place] = []
    init(name: String) { self.name = name }
    func describe() -> String { "region \(name)" }
  }

  @Model final class Country: Region {
    #Index<Country>([\.capital])
    @Attribute(.unique) var code: String?
    var capital: String = "unknown"
    var population: Int = 0
    var provinces: [Province] = []
    init(name: String, code: String?, capital: String = "unknown") {
      self.code = code
      self.capital = capital
      super.init(name: name)
    }
    override func describe() -> String { "country \(name), capital \(capital)" }
  }

  @Model class Province: Region {
    @Attribute(.unique) var number: Int?
    var country: Country?
    init(name: String, number: Int?, country: Country? = nil) {
      self.number = number
      super.init(name: name)
      self.country = country
    }
  }

  @Model final class IslandProvince: Province, CustomStringConvertible {
    var islands: [String] = []
    var description: String { "\(islands.count) islands" }
    convenience init(name: String, islands: [String]) {
      self.init(name: name, number: nil)
      self.islands = islands
    }
    override init(name: String, number: Int?, country: Country? = nil) {
      super.init(name: name, number: number, country: country)
    }
  }

  @Model final class Place {
    var name: String
    var region: Region?
    init(name: String, region: Region? = nil) {
      self.name = name
      self.region = region
    }
  }

  static let models: [any PersistentModel.Type] = [
    Region.self, Country.self, Province.self, IslandProvince.self, Place.self,
  ]

  static func container() throws -> ModelContainer {
    try ModelContainer(
      for: Schema(models), configurations: ModelConfiguration(isStoredInMemoryOnly: true))
  }
}

/// Relationships that name an inherited one as their inverse.
enum Archive {
  @Model class Item {
    var title: String
    var attachments: [Attachment] = []
    var keywords: [Keyword] = []
    init(title: String) { self.title = title }
  }

  @Model final class Letter: Item {
    var sender: String = ""
    override init(title: String) { super.init(title: title) }
  }

  @Model final class Attachment {
    var name: String
    @Relationship(inverse: \Letter.attachments) var letter: Letter?
    init(name: String, letter: Letter? = nil) {
      self.name = name
      self.letter = letter
    }
  }

  @Model final class Keyword {
    var word: String
    @Relationship(inverse: \Letter.keywords) var letters: [Letter] = []
    init(word: String) { self.word = word }
  }

  static func container() throws -> ModelContainer {
    try ModelContainer(
      for: Item.self, Letter.self, Attachment.self, Keyword.self,
      configurations: ModelConfiguration(isStoredInMemoryOnly: true))
  }
}

/// Inverses that cannot be kept in step.
enum OneSided {
  @Model final class Album {
    var title: String = ""
    var photos: [Photo] = []
    init() {}
  }

  @Model final class Photo {
    var title: String = ""
    @Relationship(inverse: \Album.photos) var album: Album?
    @Relationship(inverse: \Album.photos) var cover: Album?
    init() {}
  }

  @Model final class Shelf {
    @Relationship(inverse: \Book.title) var books: [Book] = []
    init() {}
  }

  @Model final class Book {
    var title: String = ""
    init() {}
  }
}
