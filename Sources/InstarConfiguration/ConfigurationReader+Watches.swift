import InstarLinux
import InstarSchema
import InstarWire
import Yams

/// The watches: one for each folder with stores.
extension ConfigurationReader {
  /// Not private, so that a test can find a key that it does not read.
  enum WatchKey: String, CaseIterable {
    case folder, pattern, recursive, sqlDebug, backups, backupFolder, backupCompression, whenBusy
    case busyTimeout, cutover, verify, policy, wave, stageTimeLimit, workerMemory
    case nice, diskPriority, parallel, plan, window, budget
  }

  private enum WindowKey: String, CaseIterable {
    case opens, length
  }

  func watches(_ node: Node) throws(ConfigurationErrors) -> [Configuration.Watch] {
    if isNull(node) { return [] }
    guard node.sequence != nil else {
      throw problem(node, "'watches' must be a list, each with a 'folder'")
    }
    var paths: Set<String> = []
    return try each(of: node) { (element) throws(ConfigurationErrors) in
      let watch = try watch(element)
      guard paths.insert(watch.path).inserted else {
        throw problem(
          element, "'\(watch.path)' is watched twice; give one watch several patterns")
      }
      return watch
    }
  }

  private func watch(_ node: Node) throws(ConfigurationErrors) -> Configuration.Watch {
    var watch = Configuration.Watch(folder: "")
    try read(node, keys: WatchKey.self, in: "a watch") { (key, value) throws(ConfigurationErrors) in
      switch key {
      case .folder: (watch.folder, watch.subfolders) = try folderPattern(value)
      case .pattern: watch.patterns = try patterns(value)
      case .recursive:
        watch.isRecursive = try flag(value, of: key.rawValue)
      case .sqlDebug: watch.sqlDebugLevel = try number(value, of: key.rawValue, in: 0...4)
      case .backups: watch.backups = try retention(value)
      case .backupFolder: watch.backupFolder = try path(value, of: key.rawValue)
      case .backupCompression: watch.backupCompression = try choice(value, of: key.rawValue)
      case .whenBusy: watch.whenBusy = try choice(value, of: key.rawValue)
      case .busyTimeout: watch.busyTimeout = try busyTimeout(value)
      case .cutover: watch.cutover = try choice(value, of: key.rawValue)
      case .verify: watch.verification = try choice(value, of: key.rawValue)
      case .policy: watch.policy = try choice(value, of: key.rawValue)
      case .wave: watch.wave = try number(value, of: key.rawValue, in: 1...100)
      case .stageTimeLimit: watch.stageTimeLimit = try stageTimeLimit(value)
      case .workerMemory: watch.workerMemoryBytes = try workerMemory(value)
      case .nice: watch.priority.nice = try number(value, of: key.rawValue, in: 0...19)
      case .plan: watch.plans = try names(value, of: key.rawValue)
      case .window: watch.window = try window(value)
      case .budget: watch.budget = try share(value, of: key.rawValue, orNone: true)
      case .parallel: watch.parallelRuns = try number(value, of: key.rawValue, in: 1...64)
      case .diskPriority: watch.priority.disk = try diskPriority(value)
      }
    }
    guard !watch.folder.isEmpty else { throw problem(node, "a watch has no 'folder'") }
    return watch
  }

  /// The path of a folder whose last levels may be patterns: the part before the first pattern, then each level.
  private func folderPattern(_ node: Node) throws(ConfigurationErrors) -> (String, [String]) {
    let levels = try path(node, of: "folder").split(separator: "/").map(String.init)
    guard let first = levels.firstIndex(where: { $0.contains { "*?[".contains($0) } }) else {
      return ("/" + levels.joined(separator: "/"), [])
    }
    guard !levels.contains("**") else {
      throw problem(
        node, "'folder' cannot contain '**'; to watch all folders below, write 'recursive: true'")
    }
    for level in levels where Self.hasOpenBracket(level) {
      throw problem(
        node, "'[' has no ']' in the folder '\(level)'; write '[[]' for the letter '['")
    }
    return ("/" + levels[..<first].joined(separator: "/"), Array(levels[first...]))
  }

  private func patterns(_ node: Node) throws(ConfigurationErrors) -> [String] {
    if node.sequence?.isEmpty == true { throw problem(node, "'pattern' is an empty list") }
    return try each(of: node) { (node) throws(ConfigurationErrors) in
      guard let pattern = node.scalar?.string, !pattern.isEmpty, !pattern.contains("\0") else {
        throw problem(node, "'pattern' must be a file name such as \"*.store\", or a list of them")
      }
      guard !pattern.contains("/") else {
        throw problem(
          node, "'pattern' matches file names and cannot contain a slash: '\(pattern)'")
      }
      guard !Self.hasOpenBracket(pattern) else {
        throw problem(
          node, "'[' has no ']' in the pattern '\(pattern)'; write '[[]' for the letter '['")
      }
      return pattern
    }
  }

  /// Whether a pattern has a bracket that nothing closes, which fnmatch(3) takes as a letter. A `]` at the start of the
  /// brackets is one of their letters, and a backslash makes a letter of the next character.
  private static func hasOpenBracket(_ pattern: String) -> Bool {
    var rest = pattern[...]
    while let character = rest.popFirst() {
      if character == "\\" { _ = rest.popFirst() }
      if character == "[", !skipBrackets(&rest) { return true }
    }
    return false
  }

  /// - Returns: `false` if the pattern ends first.
  private static func skipBrackets(_ rest: inout Substring) -> Bool {
    if let first = rest.first, "!^".contains(first) { rest.removeFirst() }
    var isFirst = true
    while let character = rest.popFirst() {
      if character == "]", !isFirst { return true }
      if character == "\\" { _ = rest.popFirst() }
      isFirst = false
    }
    return false
  }

  private func names(_ node: Node, of key: String) throws(ConfigurationErrors) -> [String] {
    let names = try each(of: node) { (element) throws(ConfigurationErrors) in
      guard let name = element.scalar?.string, !name.isEmpty, !isNull(element) else {
        throw problem(element, "'\(key)' must be a name, or a list of names")
      }
      return name
    }
    return withoutRepetitions(names)
  }

  private func window(_ node: Node) throws(ConfigurationErrors) -> TimeWindow {
    var opens: [CalendarEvent] = []
    var length: Duration?
    try read(node, keys: WindowKey.self, in: "'window'") {
      (key, value) throws(ConfigurationErrors) in
      switch key {
      case .opens:
        opens = try each(of: value, calendarEvent)
      case .length:
        length = try duration(
          value, of: "window.length", in: .seconds(60)...(.seconds(31 * 86_400)))
      }
    }
    guard !opens.isEmpty, let length else {
      let missing = opens.isEmpty ? "when it opens ('opens')" : "how long it stays open ('length')"
      throw problem(
        node,
        "'window' must say \(missing), such as {opens: \"Mon..Fri 22:00\", length: 6h}")
    }
    return TimeWindow(opens: opens, length: length)
  }

  private func calendarEvent(_ node: Node) throws(ConfigurationErrors) -> CalendarEvent {
    let text = node.scalar?.string ?? ""
    do {
      return try CalendarEvent(text)
    } catch {
      throw problem(
        node,
        "'window.opens' must be a calendar event in the syntax of systemd.time(7), not \(shown(node)): "
          + error.cause)
    }
  }

  private func diskPriority(_ node: Node) throws(ConfigurationErrors) -> ProcessPriority.Disk {
    if let priority = node.scalar.flatMap({ ProcessPriority.Disk($0.string) }) { return priority }
    throw problem(
      node,
      "'diskPriority' must be idle, or a number from 0 (first) to 7 (last), not \(shown(node))")
  }
}
