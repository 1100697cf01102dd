// swift-format-ignore-file
import Foundation
import Instar

// Subclasses stand before their superclasses, in files and extensions of their own.

extension ZooSchemaV1 {
  @Model final class Parrot: Bird {
    var words: [String]
    var kind = Kind.macaw

    enum Kind: String, Codable { case macaw, cockatoo }

    init(_ name: String, words: [String] = ["hello"]) {
      self.words = words
      super.init(name, wingspan: 0.3)
    }

    override var sound: String { words.joined(separator: " ") }
  }

  @Model class Bird: Animal {
    var wingspan: Double
    init(_ name: String, wingspan: Double) {
      self.wingspan = wingspan
      super.init(name: name)
    }
    override var sound: String { "chirp" }
  }
}

extension ZooSchemaV1.Bird {
  var canFly: Bool { wingspan > 0.2 }
}

@Model final class Keeper: PersistentModel {
  @Attribute var name: String
  @Relationship(
    deleteRule: .nullify,  // animals stay
    inverse: \ZooSchemaV1.Animal.keepers /* several shifts */
  )
  var animals: [ZooSchemaV1.Animal]
  var hours: ClosedRange<Int> = 8...17
  var days: [[Int]] = [[1, 2], [3]]
  var isDeleted: Bool = false
  var phone: String?

  init(name: String, animals: [ZooSchemaV1.Animal] = []) {
    self.name = name
    self.animals = animals
  }

  static func == (left: Keeper, right: Keeper) -> Bool { left.name == right.name }
  func hash(into hasher: inout Hasher) { hasher.combine(name) }
}
