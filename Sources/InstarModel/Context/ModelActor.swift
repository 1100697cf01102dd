import Dispatch
import Foundation

/// An actor with its own context, which works on models away from the main actor.
///
/// The macro `@ModelActor` adds the requirements. All code of the actor runs on its executor, so only one thread at a
/// time uses the context. Keep models inside the actor; pass values and `PersistentIdentifier`s in and out.
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
  /// The container whose stores the actor uses.
  nonisolated var modelContainer: ModelContainer { get }
  /// The executor of the actor's code, with its context.
  nonisolated var modelExecutor: any ModelExecutor { get }
}

extension ModelActor {
  /// The executor's reference for the Swift runtime.
  nonisolated public var unownedExecutor: UnownedSerialExecutor {
    modelExecutor.asUnownedSerialExecutor()
  }

  /// The actor's context.
  public var modelContext: ModelContext { modelExecutor.modelContext }

  /// The model with an identifier, in the actor's context.
  ///
  /// It is `nil` if the row does not exist or its model is of another type. If reading fails, the next fetch or save
  /// throws the error.
  public subscript<T: PersistentModel>(id: PersistentIdentifier, as type: T.Type) -> T? {
    // Another context may have deleted the row. A model that was not saved has no row.
    guard !id.id.isTemporary else { return modelContext.registeredModel(for: id) }
    do {
      let isThat = #Predicate<T> { $0.persistentModelID == id }
      return try modelContext.fetch(FetchDescriptor(predicate: isThat)).first
    } catch {
      modelContext.note(error)
      return nil
    }
  }
}

/// An executor that runs one job at a time, with one context.
public protocol ModelExecutor: SerialExecutor {
  /// The context that the jobs use.
  var modelContext: ModelContext { get }
}

/// A `ModelExecutor`. Every one is serial, because a context cannot be used by several threads at once.
public protocol SerialModelExecutor: ModelExecutor {}

/// The executor that `@ModelActor` creates: a serial queue, never the main thread.
public final class DefaultSerialModelExecutor: SerialModelExecutor, @unchecked Sendable {
  // Unchecked: after the first job, only jobs of the queue use the context.

  /// The context that the jobs use.
  public let modelContext: ModelContext
  private let queue = DispatchQueue(label: "instar.model-executor")

  /// Creates an executor with its own queue.
  ///
  /// - Parameter modelContext: A context that no other code uses from now on.
  public init(modelContext: ModelContext) { self.modelContext = modelContext }

  /// Runs a job on the queue, after those before it.
  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }
}
