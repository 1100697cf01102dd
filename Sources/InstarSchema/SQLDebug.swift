/// How much of the statements that run on a store is shown, as Core Data's launch arguments ask for it.
package struct SQLDebug: Sendable, Hashable {
  /// 0: nothing. 1 and 2: each statement, how long it took and how many rows it gave. 3: also the values bound to it. 4: also
  /// how SQLite finds its rows.
  package var level: Int

  /// Values are the user's data: they are shown where the level asks for them, and nowhere else.
  package var showsValues: Bool { level >= 3 }
  package var showsPlans: Bool { level >= 4 }

  /// - Parameter level: what is below 0 counts as 0, what is above 4 as 4.
  package init(level: Int) {
    self.level = min(max(level, 0), 4)
  }

  /// Reads the launch arguments that Apple's frameworks read out of any program's command line:
  /// `-com.apple.CoreData.SQLDebug N`, and `-com.apple.coredata.swiftdata.debug 1`, which asks for level 1. As on Apple's
  /// platforms a value that is no number counts as 0. The highest level counts.
  ///
  /// - Parameters:
  ///   - arguments: without the program's name.
  ///   - variable: the value of `INSTAR_SQL_DEBUG`, a level.
  /// - Returns: also the arguments that are left.
  package static func read(
    _ arguments: some Sequence<String>, variable: String?
  ) -> (debug: SQLDebug, rest: [String]) {
    var debug = SQLDebug(level: variable.flatMap { Int($0) } ?? 0)
    var rest: [String] = []
    var iterator = arguments.makeIterator()
    while let argument = iterator.next() {
      let most: Int
      switch argument {
      case "-com.apple.CoreData.SQLDebug": most = 4
      case "-com.apple.coredata.swiftdata.debug": most = 1
      default:
        rest.append(argument)
        continue
      }
      let level = iterator.next().flatMap { Int($0) } ?? 0
      debug.level = max(debug.level, min(max(level, 0), most))
    }
    return (debug, rest)
  }
}
