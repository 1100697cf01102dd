import InstarSchema
import Synchronization

/// The errors of contexts in a closure of a stage, including those that the closure caught.
///
/// Many plans use `try?`. A closure that continues after a failed fetch skips values, and a later stage drops their
/// column. So the first error of a fetch, a getter, the scratchpad or a save fails the stage
/// (`ModelContext.finishStage()`). A failed save no longer counts when the same context has saved its changes.
///
/// The stores of one closure share it, so contexts that the closure creates count too.
final class StageFailures: Sendable {
  private struct State {
    var firstRead: (any Error)?
    /// By number; the context keeps the number of its failed save until it saves.
    var saves: [Int: any Error] = [:]
    var lastNumber = 0
  }

  private let state = Mutex(State())

  /// The first error, except of saves.
  var firstRead: (any Error)? { state.withLock(\.firstRead) }

  /// The first error that still counts.
  var first: (any Error)? {
    state.withLock { state in state.firstRead ?? state.saves.min { $0.key < $1.key }?.value }
  }

  func note(_ error: any Error) {
    state.withLock { if $0.firstRead == nil { $0.firstRead = error } }
  }

  /// Adds an error of a save, which replaces an earlier one of the same context, and returns its number.
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

extension StageFailures? {
  /// Returns the result of `body`. Its error also fails the stage.
  func watching<Value>(_ body: () throws -> Value) throws -> Value {
    do {
      return try body()
    } catch {
      self?.note(error)
      throw error
    }
  }
}

/// The error of a block, on its way through the fetch that called it.
private struct BlockError: Error {
  let cause: any Error
}

extension ModelContext {
  /// Saves the changes that the closure of a stage left pending.
  ///
  /// - Throws: The first error of a fetch, a getter, the scratchpad or a save in the closure, even if the closure
  ///   caught it; otherwise the errors of `save()`.
  package func finishStage() throws {
    // Checked before the save, because the first of several errors is the cause.
    if let error = stores.stageFailures?.firstRead { throw Self.swallowed(error) }
    try save()
    readLargeFetches()
    if let error = stores.stageFailures?.first { throw Self.swallowed(error) }
  }

  private static func swallowed(_ error: any Error) -> any Error {
    guard var known = error as? InstarError ?? (error as? SwiftDataError)?.cause else {
      return error
    }
    known.cause += "; the plan's code ignored this error"
    return known
  }

  /// Returns the result of `body`. In the closure of a stage, its error also fails the stage.
  func failingStage<Value>(_ body: () throws -> Value) throws -> Value {
    try stores.stageFailures.watching { try working(body) }
  }

  /// Runs a fetch that calls a block of the caller. Its error also fails the stage, but that of the block does not by
  /// itself: the caller has it.
  func failingStageUnlessInBlock(_ fetch: () throws -> Void) throws {
    do {
      try working(fetch)
    } catch let error as BlockError {
      throw error.cause
    } catch {
      stores.stageFailures?.note(error)
      throw error
    }
  }

  /// Calls the block of a fetch that `failingStageUnlessInBlock` runs.
  func callBlock(_ call: () throws -> Void) throws {
    do {
      try call()
    } catch {
      throw BlockError(cause: error)
    }
  }

  /// Runs a save. Its error fails the stage, unless a later save of this context succeeds.
  func failingStageUntilSaved(_ save: () throws -> Void) throws {
    guard let failures = stores.stageFailures else { return try save() }
    do {
      try working(save)
      if let number = failedSave { failures.forgetSave(number) }
      failedSave = nil
    } catch {
      failedSave = failures.noteSave(error, replacing: failedSave)
      throw error
    }
  }
}
