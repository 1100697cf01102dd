import Glibc
import Instar

// The plan of packaging/progress: a stage that takes a millisecond for each box, by a transform or by a closure.

enum ProgressV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Box.self] }

  @Table("box")
  @Model final class Box {
    var id: Int
    var name: String
    init(id: Int, name: String) {
      self.id = id
      self.name = name
    }
  }
}

enum ProgressV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Box.self] }

  @Table("box")
  @Model final class Box {
    var id: Int
    var name: String
    var length: Int?
    init(id: Int, name: String) {
      self.id = id
      self.name = name
    }
  }
}

/// The length of a text, after a millisecond.
@Sendable private func slowLength(of text: String) -> Int {
  usleep(1000)
  return text.count
}

enum ProgressPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [ProgressV1.self, ProgressV2.self] }
  static var stages: [MigrationStage] { [measure] }

  #if CLOSURE
    static let measure = MigrationStage.custom(
      fromVersion: ProgressV1.self, toVersion: ProgressV2.self, willMigrate: nil,
      didMigrate: { context in
        try context.enumerate(FetchDescriptor<ProgressV2.Box>()) { box in
          box.length = slowLength(of: box.name)
        }
      })
  #else
    static let measure = MigrationStage.transform(
      fromVersion: ProgressV1.self, toVersion: ProgressV2.self, label: "Measure"
    ) {
      Transform(ProgressV1.Box.self, ProgressV2.Box.self)
        .set(\.length, from: \.name) { slowLength(of: $0) }
    }
  #endif
}

#InstarPlugin(ProgressPlan.self)
