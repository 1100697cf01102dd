import Instar

/// Models whose properties cover every kind of value and path that a predicate can use.
enum Catalog {
  enum Unit: String, Codable, CaseIterable { case dash, ounce, spoon }
  enum Level: Int, Codable { case low = -1, middle, high }
  enum Glass: Codable { case coupe, highball, rocks }

  struct Author: Codable, Equatable {
    var name: String
    var number: Int
    var isAlive: Bool
    var unit: Unit?
    var nick: String?
    var works: [String]
  }

  @Model
  final class Item {
    var uid: Int
    var title: String
    var subtitle: String?
    var count: Int = 0
    var rank: Int?
    var small: Int8 = 0
    var large: UInt64 = 0
    var score: Double = 0
    var weight: Float = 0
    var isDone: Bool = false
    var isHidden: Bool?
    var date: Date = Date(timeIntervalSinceReferenceDate: 0)
    var key: UUID
    var payload: Data?
    var link: URL?
    var price: Decimal = 0
    var unit: Unit = Unit.dash
    var level: Level?
    var glass: Glass = Glass.coupe
    var author: Author = Author(name: "", number: 0, isAlive: true, works: [])
    var editor: Author?
    var words: [String] = []
    var numbers: Set<Int> = []
    var halves: [Double]?
    var keys: [UUID] = []
    var units: [Unit] = []
    var shelf: Shelf?
    @Relationship(inverse: \Label.items) var labels: [Label] = []
    var shout: String { title.uppercased() }

    init(uid: Int, title: String, key: UUID) {
      self.uid = uid
      self.title = title
      self.key = key
    }
  }

  @Model
  final class Shelf {
    var name: String
    var level: Int?
    var room: Room?
    @Relationship(inverse: \Item.shelf) var items: [Item] = []

    init(name: String) { self.name = name }
  }

  @Model
  final class Room {
    var name: String
    @Relationship(inverse: \Shelf.room) var shelves: [Shelf] = []

    init(name: String) { self.name = name }
  }

  @Model
  final class Label {
    var name: String
    var weight: Int = 0
    var items: [Item] = []

    init(name: String) { self.name = name }
  }

  static func container() throws -> ModelContainer {
    try ModelContainer(
      for: Schema([Item.self, Shelf.self, Room.self, Label.self]),
      configurations: ModelConfiguration(isStoredInMemoryOnly: true))
  }
}
