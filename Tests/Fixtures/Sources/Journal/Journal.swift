// swift-format-ignore-file
import Foundation
import Instar

public protocol Named { var name: String { get } }
protocol Archivable: AnyObject { var archivedAt: Date? { get set } }
protocol Record: PersistentModel { static var title: String { get } }

extension Archivable {
  var isArchived: Bool { archivedAt != nil }
  func archive() { archivedAt = .now }
}

class JournalSchemaV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(0, 1, 0)
  static let models: [any PersistentModel.Type] = [Entry.self, Mood.self]
}

extension JournalSchemaV1 {
  @Model
  class Entry: Named, Archivable, Hashable {
    internal var name: String
    fileprivate(set) var text: String? = nil
    var archivedAt: Date?
    var moods: [Mood]

    struct Draft {
      var name = ""
      var text: String?
    }

    init(name: String, moods: [Mood] = []) {
      self.name = name
      self.moods = moods
    }

    convenience init?(_ draft: Draft) {
      guard !draft.name.isEmpty else { return nil }
      self.init(name: draft.name)
      text = draft.text
    }

    subscript(word word: Int) -> Substring? {
      let words = text?.split(separator: " ") ?? []
      return words.indices.contains(word) ? words[word] : nil
    }

    deinit {}
  }

  @Model
  final class Mood: Record {
    static let title = "Mood"
    @Attribute(.unique) var score: Int16
    init(score: Int16) { self.score = score }
  }
}

extension JournalSchemaV1.Entry: CustomDebugStringConvertible {
  var debugDescription: String { "Entry(\(name))" }
}

enum JournalPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [JournalSchemaV1.self] }
  static var stages: [MigrationStage] { [] }
}
