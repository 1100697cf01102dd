import InstarSchema

/// What is wrong in a configuration, or in a part of it, in the order of the lines: at least one error where it is
/// thrown.
struct ConfigurationErrors: Error {
  private(set) var errors: [InstarError] = []

  init() {}

  init(_ error: InstarError) { errors = [error] }

  /// Reads one value. What is wrong with it is added to these errors.
  mutating func collect(_ read: () throws(ConfigurationErrors) -> Void) {
    do throws(ConfigurationErrors) {
      try read()
    } catch {
      errors += error.errors
    }
  }

  /// Throws these errors unless there is none.
  func throwIfAny() throws(ConfigurationErrors) {
    if !errors.isEmpty { throw self }
  }
}
