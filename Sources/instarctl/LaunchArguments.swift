import Foundation
import InstarSchema

/// The launch arguments that Apple's frameworks accept in any program, removed from the command line before it is
/// parsed.
///
/// They and `INSTAR_SQL_DEBUG` set the level of SQL debugging (see `SQLDebug`).
struct LaunchArguments: Sendable {
  var sqlDebugLevel = 0
  /// The other arguments, for the command line parser.
  var remaining: [String] = []

  static let ofThisProcess = LaunchArguments(Array(CommandLine.arguments.dropFirst()))

  init(_ arguments: [String]) {
    let (debug, rest) = SQLDebug.read(
      arguments, variable: ProcessInfo.processInfo.environment["INSTAR_SQL_DEBUG"])
    sqlDebugLevel = debug.level
    remaining = rest
  }
}
