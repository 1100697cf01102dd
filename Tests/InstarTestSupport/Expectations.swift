public import InstarSchema

/// A deadline that no test reaches, even on a loaded machine, unless something is wrong.
public func soon() -> ContinuousClock.Instant { .now + .seconds(120) }

/// Waits until `condition` holds, and throws after `soon()`.
public func wait(_ what: String, until condition: () async throws -> Bool) async throws {
  let deadline = soon()
  while try await !condition() {
    guard ContinuousClock.now < deadline else {
      throw MissingError(description: "waited in vain: \(what)")
    }
    try await Task.sleep(for: .milliseconds(20))
  }
}

/// Returns the `InstarError` that `body` throws.
public func instarError(
  file: StaticString = #fileID, line: UInt = #line, _ body: () throws -> Void
) throws -> InstarError {
  do {
    try body()
  } catch let error as InstarError {
    return error
  }
  throw MissingError(description: "no InstarError was thrown at \(file):\(line)")
}

private struct MissingError: Error, CustomStringConvertible {
  let description: String
}
