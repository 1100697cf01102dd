import Instar

// Models with every macro and argument of the API page.

/// A type that no store knows, and that is not Codable.
final class Color: Sendable, Equatable {
  let red: UInt8
  let green: UInt8
  init(red: UInt8, green: UInt8) {
    self.red = red
    self.green = green
  }
  static func == (one: Color, two: Color) -> Bool { (one.red, one.green) == (two.red, two.green) }
}

final class ColorTransformer: ValueTransformer {
  override func transformedValue(_ value: Any?) -> Any? {
    (value as? Color).map { Data([$0.red, $0.green]) }
  }
  override func reverseTransformedValue(_ value: Any?) -> Any? {
    guard let data = value as? Data, data.count == 2 else { return nil }
    return Color(red: data[data.startIndex], green: data[data.startIndex + 1])
  }
}

enum MacroModels {}

extension MacroModels {
  struct Size: Codable, Equatable {
    var width: Int
    var height: Int
  }

  @Model
  final class Album {
    #Unique<Album>([\.number], [\.name, \.year])
    #Index<Album>([\.name], [\.year, \.name])

    @Attribute(.unique) var uid: String
    var name: String
    var year: Int
    var number: Int
    @Attribute(.transformable(by: ColorTransformer.self)) var color: Color = Color(red: 1, green: 2)
    @Attribute(.transformable(by: "ColorTransformer")) var otherColor: Color?
    @Attribute(.codable) var size: Size = Size(width: 0, height: 0)
    @Attribute(.externalStorage) var cover: Data?
    @Attribute(.preserveValueOnDeletion, .spotlight) var title: String?
    @Attribute(.allowsCloudEncryption, originalName: "memo", hashModifier: "v2") var secret: String?
    @Attribute(.ephemeral) var position: Int = 3
    @Transient var isOpen = false
    @Relationship(deleteRule: .cascade, inverse: \Track.album) var tracks: [Track] = []
    @Relationship(deleteRule: .deny) var label: Label?
    @Relationship(minimumModelCount: 0, maximumModelCount: 2, originalName: "artists")
    var singers: [Singer] = []

    var summary: String { "\(name) (\(year))" }
    func older(than other: Album) -> Bool { year < other.year }

    init(uid: String, name: String, year: Int, number: Int) {
      self.uid = uid
      self.name = name
      self.year = year
      self.number = number
    }

    convenience init(uid: String) { self.init(uid: uid, name: uid, year: 0, number: uid.hashValue) }
  }

  @Model
  final class Track {
    #Index<Track>(.binary([\.name]), .rtree([\.start, \.end]))

    var name: String
    var start: Double = 0
    var end: Double = 0
    var album: Album?
    init(name: String) { self.name = name }
  }

  @Model
  final class Label {
    @Relationship(.unique) var owner: Singer?
    var name: String
    init(name: String) { self.name = name }
  }

  @Model
  final class Singer {
    var name: String
    init(name: String) { self.name = name }
  }

  static let models: [any PersistentModel.Type] = [
    Album.self, Track.self, Label.self, Singer.self,
  ]
}

/// Compared by its value, without saying that it is `Hashable`.
@Model
final class Coin {
  var value: Int
  init(value: Int) { self.value = value }

  static func == (left: Coin, right: Coin) -> Bool { left.value == right.value }
  func hash(into hasher: inout Hasher) { hasher.combine(value) }
}

@Model
final class HashableCoin: Hashable {
  var value: Int
  init(value: Int) { self.value = value }

  static func == (left: HashableCoin, right: HashableCoin) -> Bool { left.value == right.value }
  func hash(into hasher: inout Hasher) { hasher.combine(value) }
}
