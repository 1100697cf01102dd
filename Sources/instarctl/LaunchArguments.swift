import Foundation

/// The launch arguments that Apple's frameworks read out of any program's command line, taken out of
/// ours before it is parsed.
///
/// `-com.apple.CoreData.SQLDebug N` sets the level of SQL debugging, 0 to 4, and
/// `-com.apple.coredata.swiftdata.debug 1` asks for at least level 1. As on Apple platforms a value
/// that is no number counts as 0.
struct LaunchArguments: Sendable {
  var sqlDebugLevel = 0
  /// What is left for the command line parser.
  var remaining: [String] = []

  static let ofThisProcess = LaunchArguments(Array(CommandLine.arguments.dropFirst()))

  init(_ arguments: [String]) {
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      switch argument {
      case "-com.apple.CoreData.SQLDebug":
        let level = rest.popFirst().flatMap { Int($0) } ?? 0
        sqlDebugLevel = max(sqlDebugLevel, min(max(level, 0), 4))
      case "-com.apple.coredata.swiftdata.debug":
        let level = rest.popFirst().flatMap { Int($0) } ?? 0
        sqlDebugLevel = max(sqlDebugLevel, min(max(level, 0), 1))
      default:
        remaining.append(argument)
      }
    }
  }
}
