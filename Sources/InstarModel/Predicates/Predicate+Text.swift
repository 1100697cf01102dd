public import Foundation

/// Foundation's `description` ends the process for expressions that it does not know: those of a predicate that calls
/// others, or that `#Predicate` makes of several parts. `print` and string interpolation ask for this first.
extension Predicate: @retroactive TextOutputStreamable {
  /// Writes what Foundation says about the predicate; its type alone if the predicate calls others.
  public func write<Target: TextOutputStream>(to target: inout Target) {
    let isNested = String(reflecting: type(of: expression)).contains("NestedEvaluation")
    target.write(isNested ? String(describing: type(of: self)) : description)
  }
}
