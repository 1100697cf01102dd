import Instar

enum Journal {
  @Model
  final class Entry {
    @Attribute(.unique) var uid: Int
    var title: String
    var subtitle: String?
    var tags: [String] = []
    var score: Double = 0
    var folder: Folder?
    @Relationship(inverse: \Topic.entries) var topics: [Topic] = []
    init(uid: Int, title: String) {
      self.uid = uid
      self.title = title
    }
  }

  @Model
  final class Folder {
    var name: String
    @Relationship(deleteRule: .nullify, inverse: \Entry.folder) var entries: [Entry] = []
    init(name: String) { self.name = name }
  }

  @Model
  final class Topic {
    var name: String
    var entries: [Entry] = []
    init(name: String) { self.name = name }
  }

  static func container() throws -> ModelContainer {
    try ModelContainer(
      for: Entry.self, Folder.self, Topic.self,
      configurations: ModelConfiguration(isStoredInMemoryOnly: true))
  }
}
