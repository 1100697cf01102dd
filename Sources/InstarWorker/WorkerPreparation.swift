import InstarChange
import InstarEngine
import InstarModel
import InstarSchema
import InstarStore
import InstarWire

/// What a fork server does once before it forks: a small migration in memory, with messages as of a run.
///
/// The first use of a generic type and of a conformance makes the Swift runtime search all libraries, which is half of
/// the time that a worker works on a small store. A worker that is forked later has what was found.
package enum WorkerPreparation {
  enum V1: VersionedSchema {
    static let versionIdentifier = Schema.Version(1, 0, 0)
    static var models: [any PersistentModel.Type] { [Item.self] }

    @Model
    final class Item {
      var name: String
      var count: Int

      init(name: String, count: Int) {
        self.name = name
        self.count = count
      }
    }
  }

  enum V2: VersionedSchema {
    static let versionIdentifier = Schema.Version(2, 0, 0)
    static var models: [any PersistentModel.Type] { [Item.self] }

    @Model
    final class Item {
      var name: String
      var count: Int
      var note: String?

      init(name: String, count: Int) {
        self.name = name
        self.count = count
      }
    }
  }

  enum Plan: SchemaMigrationPlan {
    static var schemas: [any VersionedSchema.Type] { [V1.self, V2.self] }

    static var stages: [MigrationStage] {
      [
        .custom(
          fromVersion: V1.self, toVersion: V2.self,
          willMigrate: { context in
            for item in try context.fetch(FetchDescriptor<V1.Item>()) { item.count += 1 }
            try context.save()
          },
          didMigrate: { context in
            try context.enumerate(FetchDescriptor<V2.Item>()) { item in item.note = item.name }
            try context.save()
          })
      ]
    }
  }

  /// Performs the migration on the calling thread. No thread is left, and no file is opened.
  package static func perform() throws {
    let definition = try PlanDefinition(Plan.self)
    let path = try definition.path(from: V1.versionIdentifier)
    let request = WorkerRequest.migrate(
      plan: definition.name, from: V1.versionIdentifier, clone: "", store: "", externalFolder: nil,
      sqlDebugLevel: 0)
    _ = try WireCoder.message(WorkerRequest.self, from: WireCoder.line(request))
    _ = try WireCoder.line(WorkerEvent.ready)

    let connection = try StoreConnection(inMemory: nil)
    // Never released: libdispatch starts a thread to dispose of the connection's queue, and the server must have one
    // thread.
    _ = Unmanaged.passRetained(connection)
    try connection.perform { session in
      for statement in try path.first?.from.layout.emptyStoreStatements() ?? [] {
        try session.run(statement)
      }
      try session.run(
        "INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZNAME, ZCOUNT) VALUES (1, 1, 1, 'item', 1)")
    }
    let clone = StageExecutor.Clone(connection: connection, path: path) { event in
      // The events of a run are sent, and so encoded.
      _ = try? WireCoder.line(event)
    }
    try StageExecutor.run([clone], plan: definition.name, isCanceled: { false })
    try connection.close()
    _ = try WireCoder.line(WorkerEvent.migrated)
  }
}

/// Called by a fork server when the engine is loaded, before it forks.
@_cdecl("instar_worker_prepare")
public func instar_worker_prepare() {
  // Whatever is not prepared, each worker does itself; and what fails here fails there, where it is reported.
  try? WorkerPreparation.perform()
}
