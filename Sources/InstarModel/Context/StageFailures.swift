import InstarSchema
import Synchronization

/// The errors that contexts met while a closure of a stage ran, also those that the closure caught.
///
/// Plans are full of `try?`. A closure that goes on after a failed fetch leaves values behind, and a later stage
/// drops their column: so the first error fails the stage (`ModelContext.finishStage()`). This holds for every error
/// of a fetch, a getter, the scratchpad or a save, whatever its kind: each leaves something undone that the closure
/// asked for. One exception: a failed save counts no longer once the same context has saved its changes after all.
///
/// Belongs to the stores of one closure, so that contexts which the closure makes itself count too.
final class StageFailures: Sendable {
  private struct State {
    var firstRead: (any Error)?
    /// By the number that the context keeps until it saves.
    var saves: [Int: any Error] = [:]
    var lastNumber = 0
  }

  private let state = Mutex(State())

  /// The first error of what reads.
  var firstRead: (any Error)? { state.withLock(\.firstRead) }

  /// The first error that nothing made good: of what reads, else of a save.
  var first: (any Error)? {
    state.withLock { state in state.firstRead ?? state.saves.min { $0.key < $1.key }?.value }
  }

  func note(_ error: any Error) {
    state.withLock { if $0.firstRead == nil { $0.firstRead = error } }
  }

  /// Notes an error of a save, in place of an earlier one of the same context. Returns its number.
  func noteSave(_ error: any Error, replacing number: Int?) -> Int {
    state.withLock { state in
      if let number { state.saves[number] = nil }
      state.lastNumber += 1
      state.saves[state.lastNumber] = error
      return state.lastNumber
    }
  }

  func forgetSave(_ number: Int) {
    state.withLock { $0.saves[number] = nil }
  }
}

extension ModelContext {
  /// Saves what the closure of a stage left pending.
  ///
  /// - Throws: the first error of a fetch, a getter, the scratchpad or a save in the closure, also where the closure
  ///   caught it; else as `save()` does.
  package func finishStage() throws {
    // Before the save: where several things failed, the first one is the cause.
    if let error = stores.stageFailures?.firstRead { throw Self.swallowed(error) }
    try save()
    if let error = stores.stageFailures?.first { throw Self.swallowed(error) }
  }

  private static func swallowed(_ error: any Error) -> any Error {
    guard var known = error as? InstarError ?? (error as? SwiftDataError)?.cause else {
      return error
    }
    known.cause += "; the plan's code ignored this error"
    return known
  }

  /// Runs what reads for a closure of a stage; an error it throws fails the stage.
  func failingStage<Value>(_ body: () throws -> Value) throws -> Value {
    do {
      return try body()
    } catch {
      stores.stageFailures?.note(error)
      throw error
    }
  }

  /// Runs a save; an error it throws fails the stage, unless a later save of this context succeeds.
  func failingStageUntilSaved(_ save: () throws -> Void) throws {
    guard let failures = stores.stageFailures else { return try save() }
    do {
      try save()
      if let number = failedSave { failures.forgetSave(number) }
      failedSave = nil
    } catch {
      failedSave = failures.noteSave(error, replacing: failedSave)
      throw error
    }
  }
}
