import Foundation
import InstarSchema

/// The command line without the launch arguments that Apple's frameworks accept in any program, and the level of SQL
/// debugging that these and `INSTAR_SQL_DEBUG` set.
enum LaunchArguments {
  static let (debug, remaining) = SQLDebug.read(
    CommandLine.arguments.dropFirst(),
    variable: ProcessInfo.processInfo.environment["INSTAR_SQL_DEBUG"])
}
