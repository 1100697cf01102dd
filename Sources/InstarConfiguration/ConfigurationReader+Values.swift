import InstarSchema
import InstarWire
import Yams

/// Values of one kind, whichever key they belong to.
extension ConfigurationReader {
  func flag(_ node: Node, of key: String) throws(ConfigurationErrors) -> Bool {
    guard let flag = node.bool else {
      throw problem(node, "'\(key)' must be true or false, not \(shown(node))")
    }
    return flag
  }

  func number(
    _ node: Node, of key: String, in bounds: ClosedRange<Int>
  ) throws(ConfigurationErrors) -> Int {
    guard let number = node.int, bounds.contains(number) else {
      let isText =
        node.int == nil && node.scalar.flatMap { Int($0.string) }.map(bounds.contains) == true
      throw problem(
        node,
        "'\(key)' must be a number from \(bounds.lowerBound) to \(bounds.upperBound), "
          + "not \(shown(node))" + (isText ? "; write it without quotes" : ""))
    }
    return number
  }

  func duration(
    _ node: Node, of key: String, in bounds: ClosedRange<Duration>
  ) throws(ConfigurationErrors) -> Duration {
    guard let text = node.scalar?.string, let duration = DurationText.parse(text) else {
      throw problem(
        node, "'\(key)' must be a duration such as 250ms, 2s, 5m or 1h, not \(shown(node))")
    }
    guard bounds.contains(duration) else {
      throw problem(
        node,
        "'\(key)' must be between \(DurationText.argument(bounds.lowerBound)) and "
          + "\(DurationText.argument(bounds.upperBound)), not '\(text)'")
    }
    return duration
  }

  func busyTimeout(_ node: Node) throws(ConfigurationErrors) -> Duration {
    try duration(node, of: "busyTimeout", in: .zero...(.seconds(3600)))
  }

  func stageTimeLimit(_ node: Node) throws(ConfigurationErrors) -> Duration {
    try duration(node, of: "stageTimeLimit", in: .seconds(1)...(.seconds(30 * 86_400)))
  }

  func size(_ node: Node, of key: String) throws(ConfigurationErrors) -> Int64 {
    guard let text = node.scalar?.string, let bytes = SizeText.parse(text) else {
      throw problem(
        node, "'\(key)' must be a size in MiB or GiB, such as 512MiB or 4GiB, not \(shown(node))")
    }
    return bytes
  }

  func workerMemory(_ node: Node) throws(ConfigurationErrors) -> Int64 {
    let bytes = try size(node, of: "workerMemory")
    guard SizeText.workerMemory.contains(bytes) else {
      throw problem(
        node, "'workerMemory' must be a size \(SizeText.workerMemoryBounds), not \(shown(node))")
    }
    return bytes
  }

  func share(
    _ node: Node, of key: String, orNone: Bool = false
  ) throws(ConfigurationErrors) -> RolloutSettings.Share {
    let share = node.scalar.flatMap { RolloutSettings.Share($0.string) }
    guard let share, orNone || ![.count(0), .percent(0)].contains(share) else {
      throw problem(
        node,
        "'\(key)' must be a number of stores such as 5, or a share up to 100% such as 10%, not \(shown(node))"
      )
    }
    return share
  }

  func choice<Choice: RawRepresentable & CaseIterable>(
    _ node: Node, of key: String
  ) throws(ConfigurationErrors) -> Choice where Choice.RawValue == String {
    if let choice = node.scalar.flatMap({ Choice(rawValue: $0.string) }) { return choice }
    let names = Choice.allCases.map(\.rawValue)
    let hint = node.scalar.flatMap { Suggestion.nearest(to: $0.string, among: names) }
      .map { "; did you mean '\($0)'?" }
    throw problem(
      node, "'\(key)' must be \(Self.alternatives(names)), not \(shown(node))\(hint ?? "")")
  }

  /// "a, b or c".
  private static func alternatives(_ names: [String]) -> String {
    guard let last = names.last, names.count > 1 else { return names.first ?? "" }
    return "\(names.dropLast().joined(separator: ", ")) or \(last)"
  }

  func path(
    _ node: Node, of key: String, to what: String = "a folder"
  ) throws(ConfigurationErrors) -> String {
    guard var path = node.scalar?.string, !isNull(node), !path.contains("\0") else {
      throw problem(node, "'\(key)' must be the path of \(what)")
    }
    guard path.hasPrefix("/") else {
      throw problem(node, "'\(key)' must be an absolute path, not '\(path)'")
    }
    guard !path.split(separator: "/").contains(where: { $0 == "." || $0 == ".." }) else {
      throw problem(node, "'\(key)' must not contain '.' or '..': '\(path)'")
    }
    path = "/" + path.split(separator: "/").joined(separator: "/")
    return path
  }

  func folders(_ node: Node, of key: String) throws(ConfigurationErrors) -> [String] {
    if isNull(node) { return [] }
    return withoutRepetitions(
      try each(of: node) { (element) throws(ConfigurationErrors) in try path(element, of: key) })
  }

  func withoutRepetitions(_ texts: [String]) -> [String] {
    var seen: Set<String> = []
    return texts.filter { seen.insert($0).inserted }
  }
}
