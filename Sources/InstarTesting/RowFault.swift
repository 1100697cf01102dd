internal import Instar
internal import Synchronization

/// Fails the writes of a plan's code from one row on. Later rows fail too, because `enumerate` writes a failed batch
/// again.
final class RowFault: Sendable {
  private struct Injected: Error, CustomStringConvertible {
    var row: Int
    var description: String { "the test failed row \(row) on purpose" }
  }

  private let row: Int
  private let count = Mutex(0)

  init(at row: Int) { self.row = row }

  var hasHappened: Bool { count.withLock { $0 >= row } }

  func beforeWrite() throws {
    let number = count.withLock { count in
      count += 1
      return count
    }
    if number >= row { throw Injected(row: row) }
  }

  /// Runs a migration.
  ///
  /// - Returns: Whether it succeeded.
  /// - Throws: The error of a migration that failed without this fault.
  func fails(_ migrate: () throws -> Void) throws -> Bool {
    do {
      try migrate()
      return true
    } catch {
      // The error is the one that is asked for.
      if hasHappened { return false }
      throw error
    }
  }
}
