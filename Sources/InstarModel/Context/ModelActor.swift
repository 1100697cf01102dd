import Dispatch
import Foundation

/// An actor with a context of its own: work on models away from the main actor.
///
/// `@ModelActor` makes an actor one. All code of the actor runs on its executor, so that its context is used from one
/// thread at a time. Models stay within the actor; what goes in and out are values and `PersistentIdentifier`s.
///
/// ```swift
/// @ModelActor actor Importer {
///   func rename(_ id: PersistentIdentifier, to title: String) throws {
///     guard let note = self[id, as: Note.self] else { return }
///     note.title = title
///     try modelContext.save()
///   }
/// }
/// let importer = Importer(modelContainer: container)
/// try await importer.rename(id, to: "Groceries")
/// ```
public protocol ModelActor: Actor {
  /// The container whose store the actor works with.
  nonisolated var modelContainer: ModelContainer { get }
  /// What the actor's code runs on, and the context it uses.
  nonisolated var modelExecutor: any ModelExecutor { get }
}

extension ModelActor {
  nonisolated public var unownedExecutor: UnownedSerialExecutor {
    modelExecutor.asUnownedSerialExecutor()
  }

  /// The actor's context.
  public var modelContext: ModelContext { modelExecutor.modelContext }

  /// The model with that identifier, in the actor's context.
  ///
  /// `nil` where the store has no such row, and where it is a model of another type. An error met on the way is thrown by the
  /// next fetch or save.
  public subscript<T: PersistentModel>(id: PersistentIdentifier, as type: T.Type) -> T? {
    // A row may be gone by the save of another context; what was not saved has none.
    guard id.id.key.isRowKey else { return modelContext.registeredModel(for: id) }
    do {
      let isThat = #Predicate<T> { $0.persistentModelID == id }
      return try modelContext.fetch(FetchDescriptor(predicate: isThat)).first
    } catch {
      modelContext.note(error)
      return nil
    }
  }
}

/// Runs code that uses one context, one job at a time.
public protocol ModelExecutor: SerialExecutor {
  var modelContext: ModelContext { get }
}

/// The same: an executor of several threads at once could not use a context.
public protocol SerialModelExecutor: ModelExecutor {}

/// The executor that `@ModelActor` gives an actor: a serial queue, never the main thread.
///
/// Invariant: the context is only used by jobs of the queue, once the executor has its first job.
public final class DefaultSerialModelExecutor: SerialModelExecutor, @unchecked Sendable {
  public let modelContext: ModelContext
  private let queue = DispatchQueue(label: "instar.model-executor")

  /// - Parameter modelContext: one that nothing else uses from now on.
  public init(modelContext: ModelContext) { self.modelContext = modelContext }

  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }
}
