import Foundation
import Instar
import InstarEngine
import InstarStore
import InstarTestSupport
import InstarWire
import Testing

@Suite("Labels of stages")
struct StageLabelTests {
  @Test("a plan's manifest and its planned migration show the label of a stage, of any kind")
  func plan() throws {
    let plan = try PlanDefinition(LabeledPlan.self)
    #expect(plan.manifest.stages.map(\.label) == ["AddPages", "CountPages", nil])
    #expect(plan.manifest.stages.map(\.kind) == [.lightweight, .custom, .lightweight])
    let migration = try plan.migration(from: Schema.Version(1, 0, 0))
    #expect(migration.stages.map(\.label) == ["AddPages", "CountPages", nil])
  }

  @Test("lightweight stages that are made as one have the labels of all that have one")
  func fused() throws {
    let migration = try PlanDefinition(LabeledLightweightPlan.self)
      .migration(from: Schema.Version(1, 0, 0))
    #expect(migration.stages.map(\.label) == ["AddPages, AddSubtitle"])
  }

  @Test("an error names the label of its stage")
  func error() throws {
    let folder = try TemporaryFolder()
    let path = folder.path("a.store")
    let container = try ModelContainer(
      for: Schema(versionedSchema: LabelV1.self),
      configurations: ModelConfiguration(url: URL(filePath: path)))
    try container.close()
    let definition = try PlanDefinition(LabeledPlan.self)
    let connection = try StoreConnection(path: path, durability: .clone)
    let error = #expect(throws: InstarError.self) {
      try StageExecutor.run(
        [
          StageExecutor.Clone(
            connection: connection, path: definition.path(from: Schema.Version(1, 0, 0))
          ) { _ in }
        ], plan: definition.name)
    }
    #expect(error?.stage == "CountPages (2 of 3), didMigrate")
    try connection.close()
  }

  @Test("a stage with a label stays the stage that it was, and a second label replaces the first")
  func modifier() {
    let stage = MigrationStage.lightweight(fromVersion: LabelV1.self, toVersion: LabelV2.self)
    #expect(stage.label == nil)
    let labeled = stage.labeled("a").labeled("b")
    #expect(labeled.label == "b")
    #expect(labeled.fromVersion.versionIdentifier == Schema.Version(1, 0, 0))
    #expect(labeled.toVersion.versionIdentifier == Schema.Version(2, 0, 0))
  }
}

private enum LabelV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Book.self] }
  @Model final class Book {
    var title: String
    init(title: String) { self.title = title }
  }
}

private enum LabelV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Book.self] }
  @Model final class Book {
    var title: String
    var pages: Int?
    init(title: String) { self.title = title }
  }
}

private enum LabelV3: VersionedSchema {
  static let versionIdentifier = Schema.Version(3, 0, 0)
  static var models: [any PersistentModel.Type] { [Book.self] }
  @Model final class Book {
    var title: String
    var pages: Int?
    var subtitle: String?
    init(title: String) { self.title = title }
  }
}

private enum LabelV4: VersionedSchema {
  static let versionIdentifier = Schema.Version(4, 0, 0)
  static var models: [any PersistentModel.Type] { [Book.self] }
  @Model final class Book {
    var title: String
    var pages: Int?
    init(title: String) { self.title = title }
  }
}

private struct Refusal: Error {}

private enum LabeledPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] {
    [LabelV1.self, LabelV2.self, LabelV3.self, LabelV4.self]
  }
  static var stages: [MigrationStage] {
    [
      .lightweight(fromVersion: LabelV1.self, toVersion: LabelV2.self).labeled("AddPages"),
      .custom(
        fromVersion: LabelV2.self, toVersion: LabelV3.self, willMigrate: nil,
        didMigrate: { _ in throw Refusal() }
      ).labeled("CountPages"),
      .lightweight(fromVersion: LabelV3.self, toVersion: LabelV4.self),
    ]
  }
}

private enum LabeledLightweightPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [LabelV1.self, LabelV2.self, LabelV3.self] }
  static var stages: [MigrationStage] {
    [
      .lightweight(fromVersion: LabelV1.self, toVersion: LabelV2.self).labeled("AddPages"),
      .lightweight(fromVersion: LabelV2.self, toVersion: LabelV3.self).labeled("AddSubtitle"),
    ]
  }
}
