import Glibc
import Instar

// The plan of packaging/fleet and packaging/rollout-test: a store of notes, one of which may say how its migration
// fails, or that it takes a second.

enum FleetV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Note.self] }

  @Table("note")
  @Model final class Note {
    var id: Int
    var title: String
    init(id: Int, title: String) {
      self.id = id
      self.title = title
    }
  }
}

enum FleetV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Note.self] }

  @Table("note")
  @Model final class Note {
    var id: Int
    var title: String
    var length: Int?
    init(id: Int, title: String) {
      self.id = id
      self.title = title
    }
  }
}

struct UntitledNote: Error, CustomStringConvertible {
  var description: String { "a note has no title" }
}

enum FleetPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [FleetV1.self, FleetV2.self] }

  static var invariants: [Invariant] {
    [.returnsNothing("SELECT id FROM note WHERE title = 'lost'", named: "no note is lost")]
  }

  static var stages: [MigrationStage] {
    [
      .custom(
        fromVersion: FleetV1.self, toVersion: FleetV2.self, willMigrate: nil,
        didMigrate: { context in
          try context.enumerate(FetchDescriptor<FleetV2.Note>()) { note in
            if note.title.isEmpty { throw UntitledNote() }
            if note.title == "slow" { sleep(1) }
            note.length = note.title.count
          }
        })
    ]
  }
}

#InstarPlugin(FleetPlan.self)
