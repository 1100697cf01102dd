import InstarSchema
import InstarWire
import Yams

/// Reads the nodes of a YAML document. Every value is checked where it is read, so that an error can name its line.
///
/// A mistake in one value does not hide those in others. What several values must fulfil together is checked only where
/// each of them can be used.
struct ConfigurationReader {
  let source: String
  /// The main file, which 'instarctl config check' reads.
  let main: String

  /// Not private, so that a test can find a key that it does not read.
  enum Key: String, CaseIterable {
    case state, socket, plugins, rescan, debounce, retry, parallel, stageTimeLimit, workerMemory
    case busyTimeout, backups, backupFolder, backupCompression, checkBackups, rollout, ledger
    case coordinator, metrics, requireSignature, trustedKeys, hooks, watches
  }

  /// Adds the values of one file to those of earlier files.
  ///
  /// - Parameter hasPlugins: An earlier file has named plugin folders; they replace the built-in ones.
  /// - Throws: All mistakes in the file. The values without one are added nevertheless.
  func read(
    _ yaml: String, into configuration: inout Configuration, _ hasPlugins: inout Bool
  ) throws(ConfigurationErrors) {
    guard let root = try compose(yaml), !isNull(root) else { return }
    try read(root, keys: Key.self, in: "the configuration") {
      (key, value) throws(ConfigurationErrors) in
      switch key {
      case .socket: configuration.socketPath = try path(value, of: key.rawValue, to: "a socket")
      case .state: configuration.stateFolder = try path(value, of: key.rawValue)
      case .plugins:
        let named = try folders(value, of: key.rawValue)
        let earlier = hasPlugins ? configuration.pluginFolders : []
        configuration.pluginFolders = earlier + named.filter { !earlier.contains($0) }
        hasPlugins = true
      case .rescan:
        configuration.rescanInterval = try duration(
          value, of: key.rawValue, in: .seconds(1)...(.seconds(86_400)))
      case .debounce:
        configuration.debounce = try duration(value, of: key.rawValue, in: .zero...(.seconds(60)))
      case .retry: configuration.retry = try retry(value)
      case .parallel: configuration.parallelRuns = try number(value, of: key.rawValue, in: 1...64)
      case .stageTimeLimit: configuration.stageTimeLimit = try stageTimeLimit(value)
      case .workerMemory: configuration.workerMemoryBytes = try workerMemory(value)
      case .busyTimeout:
        configuration.busyTimeout = try busyTimeout(value)
      case .backups: configuration.backups = try retention(value)
      case .backupFolder: configuration.backupFolder = try path(value, of: key.rawValue)
      case .backupCompression:
        configuration.backupCompression = try choice(value, of: key.rawValue)
      case .checkBackups:
        configuration.backupCheckInterval = try duration(
          value, of: key.rawValue, in: .seconds(1)...(.seconds(30 * 86_400)))
      case .ledger: configuration.ledger = try ledger(value)
      case .rollout: configuration.rollout = isNull(value) ? nil : try rollout(value)
      case .coordinator:
        configuration.coordinator = isNull(value) ? nil : try coordinator(value)
      case .metrics:
        configuration.metrics = isNull(value) ? MetricsSettings() : try metrics(value)
      case .requireSignature:
        configuration.requiresSignature = try flag(value, of: key.rawValue)
      case .trustedKeys: configuration.trustedKeysFolder = try path(value, of: key.rawValue)
      case .hooks: configuration.hooks = isNull(value) ? HookSettings() : try hooks(value)
      case .watches:
        for watch in try watches(value) {
          // Of an earlier file: one file does not watch a folder twice.
          if let place = configuration.watches.firstIndex(where: { $0.path == watch.path }) {
            configuration.watches[place] = watch
          } else {
            configuration.watches.append(watch)
          }
        }
      }
    }
  }

  // MARK: Mappings and lists

  /// Reads the pairs of a mapping, in its order.
  ///
  /// - Parameters:
  ///   - place: Where it is, for messages.
  ///   - readValue: Called for each key that is known.
  /// - Throws: The mistakes in all pairs.
  func read<Key: CaseIterable & RawRepresentable<String>>(
    _ node: Node, keys: Key.Type, in place: String,
    _ readValue: (Key, Node) throws(ConfigurationErrors) -> Void
  ) throws(ConfigurationErrors) {
    guard let mapping = node.mapping else {
      throw problem(node, "\(place) must have keys with values, not \(shown(node))")
    }
    var mistakes = ConfigurationErrors()
    for (key, value) in mapping {
      mistakes.collect { () throws(ConfigurationErrors) in
        try readValue(try known(key, of: keys, in: place), value)
      }
    }
    try mistakes.throwIfAny()
  }

  private func known<Key: CaseIterable & RawRepresentable<String>>(
    _ key: Node, of keys: Key.Type, in place: String
  ) throws(ConfigurationErrors) -> Key {
    guard let name = key.scalar?.string else {
      throw problem(key, "a key in \(place) must be a name, not \(shown(key))")
    }
    if let known = Key(rawValue: name) { return known }
    let names = Key.allCases.map(\.rawValue)
    let hint =
      Suggestion.nearest(to: name, among: names).map { "; did you mean '\($0)'?" }
      ?? "; the keys are \(names.joined(separator: ", "))"
    throw problem(key, "unknown key '\(name)' in \(place)\(hint)")
  }

  /// Reads the elements of a list, or the one value in place of a list.
  ///
  /// - Throws: The mistakes in all elements.
  func each<Value>(
    of node: Node, _ readElement: (Node) throws(ConfigurationErrors) -> Value
  ) throws(ConfigurationErrors) -> [Value] {
    var mistakes = ConfigurationErrors()
    var values: [Value] = []
    for element in node.sequence.map(Array.init) ?? [node] {
      mistakes.collect { () throws(ConfigurationErrors) in values.append(try readElement(element)) }
    }
    try mistakes.throwIfAny()
    return values
  }

  // MARK: YAML

  private func compose(_ yaml: String) throws(ConfigurationErrors) -> Node? {
    // libyaml is not given an empty buffer: it may have no address.
    guard yaml.contains(where: { !$0.isWhitespace }) else { return nil }
    do {
      return try Yams.compose(yaml: yaml)
    } catch let error as YamlError {
      switch error {
      case .scanner(_, let text, let mark, _), .parser(_, let text, let mark, _),
        .composer(_, let text, let mark, _):
        let line = yaml.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
          .dropFirst(mark.line - 1).first
        let hasTab = line?.prefix { $0.isWhitespace }.contains("\t") == true
        throw problem(
          line: mark.line,
          hasTab ? "\(text); the line begins with a tab, and YAML is indented with spaces" : text)
      case .duplicatedKeysInMapping(let keys, let context):
        let names = keys.sorted().map { "'\($0)'" }.joined(separator: ", ")
        let line = keys.first.flatMap {
          Self.line(repeating: $0, in: yaml, from: context.mark.line)
        }
        throw problem(
          line: line ?? context.mark.line,
          "\(names) \(keys.count == 1 ? "is" : "are") given more than once")
      case .reader(let text, _, _, _):
        throw problem(line: nil, text)
      default:
        throw problem(line: nil, "\(error)")
      }
    } catch {
      throw problem(line: nil, "\(error)")
    }
  }

  /// The line that gives a key a second time, with the indentation of the first one; `nil` where the first one does not
  /// begin its line.
  private static func line(repeating key: String, in yaml: String, from first: Int) -> Int? {
    func column(_ line: Substring) -> Int? {
      let text = line.drop { $0 == " " || $0 == "-" }
      return text.hasPrefix("\(key):") ? line.count - text.count : nil
    }
    let lines = yaml.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    guard first > 0, lines.count >= first, let indentation = column(lines[first - 1]) else {
      return nil
    }
    return lines.indices.dropFirst(first).first { column(lines[$0]) == indentation }.map { $0 + 1 }
  }

  func isNull(_ node: Node) -> Bool { node.null != nil }

  /// The value as the file has it, for "not …".
  func shown(_ node: Node) -> String {
    switch node {
    case .scalar(let scalar): "'\(scalar.string)'"
    case .mapping: "keys and values"
    case .sequence: "a list"
    case .alias: "an alias"
    }
  }

  func problem(_ node: Node, _ text: String) -> ConfigurationErrors {
    problem(line: node.mark?.line, text)
  }

  private func problem(line: Int?, _ text: String) -> ConfigurationErrors {
    ConfigurationErrors(
      InstarError(
        .invalidConfiguration, "cannot use the configuration '\(source)'",
        cause: line.map { "line \($0): \(text)" } ?? text,
        next: "correct the file, then run: instarctl config check \(CommandText.quoted(main))"))
  }
}
