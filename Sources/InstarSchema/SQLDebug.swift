/// How much of each SQL statement is logged, as Core Data's launch arguments ask for it.
package struct SQLDebug: Sendable, Hashable {
  /// 0: nothing. 1 and 2: each statement with its time and number of rows. 3: also the bound values. 4: also SQLite's
  /// query plan.
  package var level: Int

  /// Bound values are the user's data: only this level shows them.
  package var showsValues: Bool { level >= 3 }
  package var showsPlans: Bool { level >= 4 }

  /// - Parameter level: Clamped to 0...4.
  package init(level: Int) {
    self.level = min(max(level, 0), 4)
  }

  /// Reads the launch arguments that Apple's frameworks accept in any program: `-com.apple.CoreData.SQLDebug N`, and
  /// `-com.apple.coredata.swiftdata.debug 1`, which asks for level 1. As on Apple's platforms, a value that is not a
  /// number counts as 0. The highest level counts.
  ///
  /// - Parameters:
  ///   - arguments: The arguments without the program's name.
  ///   - variable: The value of `INSTAR_SQL_DEBUG`, a level.
  /// - Returns: The level, and the arguments without those read.
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
