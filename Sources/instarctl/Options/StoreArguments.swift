import ArgumentParser

/// The stores that a command works on.
struct StoreArguments: ParsableArguments {
  @Argument(
    help: ArgumentHelp("A store.", valueName: "store"), completion: .file(),
    transform: { try PackedPaths.paths(in: $0) })
  private var groups: [[String]]

  var files: [String] { groups.flatMap(\.self) }
  var paths: [String] { FilePath.ofStores(files) }
}

/// Many paths in one argument.
///
/// ArgumentParser (1.8) copies all earlier values of an argument with each new one: 10,000 stores took it 1.4 s.
enum PackedPaths {
  /// The commands with `StoreArguments`.
  private static let commands: Set = ["migrate", "plan", "probe", "rehearse", "restore", "verify"]
  /// No argument of a process contains it.
  private static let separator: Character = "\0"

  /// Returns the arguments of `instarctl` with each long list of stores in one argument.
  static func pack(_ arguments: [String]) -> [String] {
    guard arguments.count > 100, arguments.first.map(commands.contains) == true else {
      return arguments
    }
    var packed: [String] = []
    var previous = ""
    var isInList = false
    for argument in arguments {
      // The argument after an option may be its value.
      let isPath = !argument.isEmpty && !argument.hasPrefix("-") && !previous.hasPrefix("-")
      if isPath && isInList {
        packed[packed.count - 1] += "\(separator)\(argument)"
      } else {
        packed.append(argument)
      }
      // The first argument is the command.
      isInList = isPath && packed.count > 1
      previous = argument
    }
    return packed
  }

  static func paths(in argument: String) throws -> [String] {
    try argument.split(separator: separator, omittingEmptySubsequences: false)
      .map { try FilePath.typed(String($0)) }
  }
}
