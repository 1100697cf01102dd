// swift-format-ignore-file
import Foundation
import Instar
import Observation

// An app with one container for all, a view model on the main actor, and work in the background.

let sharedContainer: ModelContainer = {
  let schema = Schema([TaskItem.self, Project.self], version: TasksSchemaV1.versionIdentifier)
  let configuration = ModelConfiguration(schema: schema, isStoredInMemoryOnly: true)
  do {
    return try ModelContainer(for: schema, configurations: [configuration])
  } catch {
    fatalError("Could not create ModelContainer: \(error)")
  }
}()

@Model
final class TaskItem {
  var title: String
  var priority: Priority = Priority.normal
  var dueDate: Date?
  var isDone = false
  var estimate = 1.5
  var project: Project?

  init(title: String, project: Project? = nil) {
    self.title = title
    self.project = project
  }
}

@Model
final class Project {
  var name: String
  @Relationship(deleteRule: .cascade, inverse: \TaskItem.project) var items = [TaskItem]()

  init(name: String) { self.name = name }
}

enum Priority: Int, Codable, Comparable, CaseIterable {
  case low, normal, high
  static func < (left: Priority, right: Priority) -> Bool { left.rawValue < right.rawValue }
}

enum TasksSchemaV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static let models: [any PersistentModel.Type] = [TaskItem.self, Project.self]
}

enum TasksPlan: SchemaMigrationPlan {
  static let schemas: [any VersionedSchema.Type] = [TasksSchemaV1.self]
  static let stages: [MigrationStage] = []
}

@MainActor @Observable
final class TaskList {
  private let context: ModelContext
  private(set) var items: [TaskItem] = []

  init(container: ModelContainer) {
    context = container.mainContext
  }

  func reload() throws {
    items = try context.fetch(
      FetchDescriptor<TaskItem>(
        predicate: #Predicate { !$0.isDone },
        sortBy: [SortDescriptor(\.dueDate, order: .reverse), SortDescriptor(\.title)]))
  }

  func add(_ title: String, to project: Project? = nil) throws {
    context.insert(TaskItem(title: title, project: project))
    try context.save()
    try reload()
  }
}

/// The number of tasks, counted on another thread with a context of its own.
func countInBackground(_ container: ModelContainer) async throws -> Int {
  let count: @Sendable () throws -> Int = {
    try ModelContext(container).fetchCount(FetchDescriptor<TaskItem>())
  }
  return try await Task.detached { try count() }.value
}

/// Only the identifier crosses threads.
func finish(_ id: PersistentIdentifier, in container: ModelContainer) async throws {
  try await Task.detached {
    let context = ModelContext(container)
    guard let item = context.model(for: id) as? TaskItem else { return }
    item.isDone = true
    try context.save()
  }.value
}
