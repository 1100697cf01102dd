import Foundation
import InstarSchema

/// The command line without the launch arguments that Apple's frameworks accept in any program, and the level of SQL
/// debugging that these and `INSTAR_SQL_DEBUG` set.
enum LaunchArguments {
  /// The first argument that is not UTF-8, with marks in place of its bytes. Swift puts these marks into a path too,
  /// which then names another file.
  static var malformed: String? {
    CommandLine.arguments.indices.lazy.compactMap { CommandLine.unsafeArgv[$0] }
      .first { String(validatingCString: $0) == nil }.map { String(cString: $0) }
  }

  static let (debug, remaining) = SQLDebug.read(
    CommandLine.arguments.dropFirst(),
    variable: ProcessInfo.processInfo.environment["INSTAR_SQL_DEBUG"])
}
