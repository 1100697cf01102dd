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

  /// Whether the path of the working folder is not UTF-8. Relative paths would name files in another folder.
  static var beginsInMalformedFolder: Bool {
    guard let folder = getcwd(nil, 0) else { return false }
    defer { free(folder) }
    return String(validatingCString: folder) == nil
  }

  static let (debug, remaining) = SQLDebug.read(
    CommandLine.arguments.dropFirst(),
    variable: ProcessInfo.processInfo.environment["INSTAR_SQL_DEBUG"])
}
