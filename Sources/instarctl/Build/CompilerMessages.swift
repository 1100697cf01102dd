import Foundation

/// Leaves out messages of the compiler that only follow from others.
enum CompilerMessages {
  /// The compiler evaluates the constant of `#InstarPlugin` last. After some errors it does not, and says that the
  /// constant is not one.
  private static let followUps = [
    "'@const' value should be initialized with a compile-time value",
    "global variable must be a compile-time constant to use @section attribute",
  ]

  /// Returns the output without the errors in `#InstarPlugin` that follow from another one; all of it if there is no
  /// other error.
  static func withoutFollowUps(_ output: String) -> String {
    var messages: [(head: String, lines: [Substring])] = []
    var hasOtherError = false
    for line in output.split(separator: "\n", omittingEmptySubsequences: false) {
      let head = String(line.replacing(/\u{1B}\[[0-9;]*m/, with: ""))
      if messages.isEmpty || head.contains(#/^[^`|\s].*:[0-9]+:[0-9]+: (error|warning): /#) {
        messages.append((head, [line]))
        if head.contains(": error: "), !isFollowUp(head) { hasOtherError = true }
      } else {
        messages[messages.count - 1].lines.append(line)
      }
    }
    guard hasOtherError else { return output }
    return messages.filter { !isFollowUp($0.head) }.flatMap(\.lines).joined(separator: "\n")
  }

  private static func isFollowUp(_ head: String) -> Bool {
    head.hasPrefix("macro expansion #InstarPlugin:") && followUps.contains(where: head.contains)
  }
}
