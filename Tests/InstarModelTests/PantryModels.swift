import Instar

// Models with two unique values and relationships without an inverse, in both formats of a store.

protocol Pantry: PersistentModel {
  associatedtype JarModel: PantryJar
  var name: String { get set }
  var jars: [JarModel] { get set }
  var best: JarModel? { get set }
  init(_ name: String)
}

protocol PantryJar: PersistentModel {
  associatedtype LabelModel: PantryLabel
  var name: String { get set }
  var code: String { get set }
  var labels: [LabelModel] { get set }
  init(_ name: String, _ code: String)
}

protocol PantryLabel: PersistentModel {
  var text: String { get set }
  init(_ text: String)
}

extension Pantry {
  /// A container over a store in memory.
  static func container() throws -> ModelContainer {
    try ModelContainer.inMemory(Self.self, JarModel.self, JarModel.LabelModel.self)
  }
}

extension LinkedFormat {
  var pantry: any Pantry.Type {
    switch self {
    case .coreData: CoreDataPantry.Store.self
    case .plain: PlainPantry.Store.self
    }
  }
}

enum CoreDataPantry {
  @Model
  final class Store: Pantry {
    var name: String
    var jars: [Jar] = []
    var best: Jar?
    init(_ name: String) { self.name = name }
  }

  @Model
  final class Jar: PantryJar {
    @Attribute(.unique) var name: String
    @Attribute(.unique) var code: String
    var labels: [Label] = []
    init(_ name: String, _ code: String) {
      self.name = name
      self.code = code
    }
  }

  @Model
  final class Label: PantryLabel {
    var text: String
    init(_ text: String) { self.text = text }
  }
}

enum PlainPantry {
  @Table("pantry")
  @Model
  final class Store: Pantry {
    var name: String
    @Column(.junction("pantry_jar", own: "pantry_id", other: "jar_id"))
    @Relationship(.withoutInverse) var jars: [Jar] = []
    @Relationship(.withoutInverse) var best: Jar?
    init(_ name: String) { self.name = name }
  }

  @Table("jar")
  @Model
  final class Jar: PantryJar {
    @Attribute(.unique) var name: String
    @Attribute(.unique) var code: String
    @Column(.junction("jar_label", own: "jar_id", other: "label_id"))
    @Relationship(.withoutInverse) var labels: [Label] = []
    init(_ name: String, _ code: String) {
      self.name = name
      self.code = code
    }
  }

  @Table("label")
  @Model
  final class Label: PantryLabel {
    var text: String
    init(_ text: String) { self.text = text }
  }
}
