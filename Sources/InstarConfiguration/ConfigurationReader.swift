import InstarLinux
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

  private enum Key: String, CaseIterable {
    case state, socket, plugins, rescan, debounce, retry, parallel, stageTimeLimit, workerMemory
    case busyTimeout, backups, backupFolder, backupCompression, checkBackups, rollout, ledger
    case coordinator, metrics, requireSignature, trustedKeys, hooks, watches
  }
  private enum WatchKey: String, CaseIterable {
    case folder, pattern, recursive, sqlDebug, backups, backupFolder, backupCompression, whenBusy
    case busyTimeout, cutover, verify, policy, wave, stageTimeLimit, workerMemory
    case nice, diskPriority, parallel, plan, window, budget
  }
  private enum WindowKey: String, CaseIterable {
    case opens, length
  }
  private enum BackupKey: String, CaseIterable {
    case keep, age, size, totalSize
  }
  private enum RetryKey: String, CaseIterable {
    case first, most, attempts
  }
  private enum LedgerKey: String, CaseIterable {
    case size, keep
  }
  private enum HookKey: String, CaseIterable {
    case folder, user, timeout
  }
  private enum RolloutKey: String, CaseIterable {
    case canary, waves, soak, budget
  }
  private enum CoordinatorKey: String, CaseIterable {
    case endpoints, ca, certificate, key, host, lease, onCoordinatorLoss
  }
  private enum MetricsKey: String, CaseIterable {
    case listen, textfile
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
      case .socket: configuration.socketPath = try folder(value, of: key.rawValue, what: "a socket")
      case .state: configuration.stateFolder = try folder(value, of: key.rawValue)
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
      case .backupFolder: configuration.backupFolder = try folder(value, of: key.rawValue)
      case .backupCompression:
        configuration.backupCompression = try policy(value, of: key.rawValue)
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
      case .trustedKeys: configuration.trustedKeysFolder = try folder(value, of: key.rawValue)
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

  private func watches(_ node: Node) throws(ConfigurationErrors) -> [Configuration.Watch] {
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
      case .backupFolder: watch.backupFolder = try folder(value, of: key.rawValue)
      case .backupCompression: watch.backupCompression = try policy(value, of: key.rawValue)
      case .whenBusy: watch.whenBusy = try policy(value, of: key.rawValue)
      case .busyTimeout: watch.busyTimeout = try busyTimeout(value)
      case .cutover: watch.cutover = try policy(value, of: key.rawValue)
      case .verify: watch.verification = try policy(value, of: key.rawValue)
      case .policy: watch.policy = try policy(value, of: key.rawValue)
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

  private func flag(_ node: Node, of key: String) throws(ConfigurationErrors) -> Bool {
    guard let flag = node.bool else {
      throw problem(node, "'\(key)' must be true or false, not \(shown(node))")
    }
    return flag
  }

  private func busyTimeout(_ node: Node) throws(ConfigurationErrors) -> Duration {
    try duration(node, of: "busyTimeout", in: .zero...(.seconds(3600)))
  }

  private func stageTimeLimit(_ node: Node) throws(ConfigurationErrors) -> Duration {
    try duration(node, of: "stageTimeLimit", in: .seconds(1)...(.seconds(30 * 86_400)))
  }

  private func workerMemory(_ node: Node) throws(ConfigurationErrors) -> Int64 {
    let bytes = try size(node, of: "workerMemory")
    guard SizeText.workerMemory.contains(bytes) else {
      throw problem(
        node, "'workerMemory' must be a size from 256MiB to 1024GiB, not \(shown(node))")
    }
    return bytes
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

  private func policy<Policy: RawRepresentable & CaseIterable>(
    _ node: Node, of key: String
  ) throws(ConfigurationErrors) -> Policy where Policy.RawValue == String {
    if let policy = node.scalar.flatMap({ Policy(rawValue: $0.string) }) { return policy }
    let names = Policy.allCases.map(\.rawValue)
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

  private func retry(_ node: Node) throws(ConfigurationErrors) -> Configuration.Retry {
    var retry = Configuration.Retry()
    try read(node, keys: RetryKey.self, in: "'retry'") { (key, value) throws(ConfigurationErrors) in
      let bounds = Duration.milliseconds(100)...(.seconds(86_400))
      switch key {
      case .first: retry.first = try duration(value, of: "retry.first", in: bounds)
      case .most: retry.most = try duration(value, of: "retry.most", in: bounds)
      case .attempts: retry.attempts = try number(value, of: "retry.attempts", in: 1...1_000_000)
      }
    }
    guard retry.first <= retry.most else {
      throw problem(
        node,
        "'retry.first' (\(DurationText.format(retry.first))) is longer than "
          + "'retry.most' (\(DurationText.format(retry.most)))")
    }
    return retry
  }

  private func rollout(_ node: Node) throws(ConfigurationErrors) -> RolloutSettings {
    var rollout = RolloutSettings()
    try read(node, keys: RolloutKey.self, in: "'rollout'") {
      (key, value) throws(ConfigurationErrors) in
      switch key {
      case .canary: rollout.canary = try share(value, of: "rollout.canary")
      case .waves:
        rollout.waves = try each(of: value) { (element) throws(ConfigurationErrors) in
          try share(element, of: "rollout.waves")
        }
      case .soak:
        rollout.soak = try duration(
          value, of: "rollout.soak", in: .zero...(.seconds(30 * 86_400)))
      case .budget: rollout.budget = try share(value, of: "rollout.budget", orNone: true)
      }
    }
    for (step, next) in zip(rollout.steps, rollout.steps.dropFirst())
    where step.isKnownToReach(next) {
      throw problem(
        node,
        "each wave of 'rollout' includes the earlier ones, so it must be larger; "
          + "\(step) is not less than \(next)")
    }
    return rollout
  }

  private func coordinator(_ node: Node) throws(ConfigurationErrors) -> CoordinatorSettings {
    var coordinator = CoordinatorSettings()
    try read(node, keys: CoordinatorKey.self, in: "'coordinator'") {
      (key, value) throws(ConfigurationErrors) in
      switch key {
      case .endpoints:
        coordinator.endpoints = try each(of: value, endpoint)
      case .ca: coordinator.authority = try folder(value, of: "coordinator.ca", what: "a file")
      case .certificate:
        coordinator.certificate = try folder(
          value, of: "coordinator.certificate", what: "a file")
      case .key: coordinator.key = try folder(value, of: "coordinator.key", what: "a file")
      case .host: coordinator.host = try hostName(value)
      case .lease:
        coordinator.lease = try duration(
          value, of: "coordinator.lease", in: .seconds(5)...(.seconds(600)))
      case .onCoordinatorLoss: coordinator.onLoss = try policy(value, of: key.rawValue)
      }
    }
    guard !coordinator.endpoints.isEmpty else {
      throw problem(node, "'coordinator' must name the 'endpoints' of etcd")
    }
    guard (coordinator.certificate == nil) == (coordinator.key == nil) else {
      throw problem(node, "'coordinator' must name both 'certificate' and 'key', or neither")
    }
    return coordinator
  }

  /// The address of a member of etcd. Without TLS anybody on the network could begin a rollout, so `http:` is for this
  /// machine only.
  private func endpoint(_ node: Node) throws(ConfigurationErrors) -> String {
    let text = isNull(node) ? "" : node.scalar?.string ?? ""
    let scheme = text.prefix { $0 != ":" }
    guard text.hasPrefix("http://") || text.hasPrefix("https://"),
      let (host, _) = Self.hostAndPort(text.dropFirst(scheme.count + 3)),
      !host.contains(where: { $0.isWhitespace || "/@?#".contains($0) })
    else {
      throw problem(
        node,
        "'coordinator.endpoints' must be addresses such as https://etcd1.example.com:2379, "
          + "not \(shown(node))")
    }
    if scheme == "http", LoopbackSocket.numericHost(host) == nil {
      throw problem(
        node,
        "'coordinator.endpoints' must begin with https:// for another machine, not '\(text)': "
          + "without TLS, anybody on the network could begin a rollout")
    }
    return text
  }

  /// The parts of an address such as 127.0.0.1:9464; `nil` if the text has no port.
  private static func hostAndPort(_ text: some StringProtocol) -> (host: String, port: UInt16)? {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count > 1, let port = parts.last.flatMap({ UInt16($0) }), port > 0 else {
      return nil
    }
    return (parts.dropLast().joined(separator: ":"), port)
  }

  private func hostName(_ node: Node) throws(ConfigurationErrors) -> String {
    let name = isNull(node) ? "" : node.scalar?.string ?? ""
    guard CoordinatorSettings.isHostName(name) else {
      throw problem(
        node,
        "'coordinator.host' must have letters, digits, dots, underscores and hyphens, at most 253, "
          + "not \(shown(node))")
    }
    return name
  }

  private func metrics(_ node: Node) throws(ConfigurationErrors) -> MetricsSettings {
    var metrics = MetricsSettings()
    try read(node, keys: MetricsKey.self, in: "'metrics'") {
      (key, value) throws(ConfigurationErrors) in
      switch key {
      case .listen: metrics.address = try address(value)
      case .textfile:
        let file = try folder(value, of: "metrics.textfile", what: "a file")
        guard file.hasSuffix(".prom") else {
          throw problem(
            value,
            "'metrics.textfile' must end in .prom, not '\(file)': node_exporter reads no other file"
          )
        }
        metrics.textFile = file
      }
    }
    return metrics
  }

  private func address(_ node: Node) throws(ConfigurationErrors) -> MetricsSettings.Address {
    let key = "metrics.listen"
    let text = isNull(node) ? nil : node.scalar?.string
    if let text, text.hasPrefix("unix:") {
      let path = Node.scalar(
        Node.Scalar(String(text.dropFirst("unix:".count)), .implicit, .any, node.mark))
      return .socket(path: try folder(path, of: key, what: "a socket"))
    }
    guard let (host, port) = text.flatMap({ Self.hostAndPort($0) }) else {
      throw problem(
        node,
        "'\(key)' must be an address such as 127.0.0.1:9464 or unix:/run/instar/metrics.sock, "
          + "not \(shown(node))")
    }
    guard let numeric = LoopbackSocket.numericHost(host) else {
      throw problem(
        node,
        "'\(key)' must be on the loopback interface, such as 127.0.0.1:\(port), not \(shown(node)): "
          + "instard serves its metrics to this machine only")
    }
    return .loopback(host: numeric, port: port)
  }

  private func hooks(_ node: Node) throws(ConfigurationErrors) -> HookSettings {
    var hooks = HookSettings()
    try read(node, keys: HookKey.self, in: "'hooks'") { (key, value) throws(ConfigurationErrors) in
      switch key {
      case .folder: hooks.folder = try folder(value, of: "hooks.folder")
      case .user:
        guard let user = value.scalar?.string, !user.isEmpty, !user.contains("\0") else {
          throw problem(value, "'hooks.user' must be the name of a user, not \(shown(value))")
        }
        hooks.user = user
      case .timeout:
        hooks.timeLimit = try duration(
          value, of: "hooks.timeout", in: .milliseconds(100)...(.seconds(3600)))
      }
    }
    return hooks
  }

  private func share(
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

  private func ledger(_ node: Node) throws(ConfigurationErrors) -> LedgerRetention {
    var ledger = LedgerRetention()
    try read(node, keys: LedgerKey.self, in: "'ledger'") {
      (key, value) throws(ConfigurationErrors) in
      switch key {
      case .size:
        ledger.fileBytes = try size(value, of: "ledger.size")
        guard ledger.fileBytes >= 1 << 20 else {
          throw problem(value, "'ledger.size' must be at least 1MiB, not \(shown(value))")
        }
      case .keep: ledger.files = try number(value, of: "ledger.keep", in: 1...1000)
      }
    }
    return ledger
  }

  private func retention(_ node: Node) throws(ConfigurationErrors) -> BackupRetention {
    var retention = BackupRetention()
    try read(node, keys: BackupKey.self, in: "'backups'") {
      (key, value) throws(ConfigurationErrors) in
      switch key {
      case .keep: retention.count = try number(value, of: "backups.keep", in: 1...1_000_000)
      case .age:
        retention.age = try duration(
          value, of: "backups.age", in: .seconds(3600)...(.seconds(366 * 86_400)))
      case .size: retention.bytes = try size(value, of: "backups.size")
      case .totalSize: retention.totalBytes = try size(value, of: "backups.totalSize")
      }
    }
    return retention
  }

  private func size(_ node: Node, of key: String) throws(ConfigurationErrors) -> Int64 {
    guard let text = node.scalar?.string, let bytes = SizeText.parse(text) else {
      throw problem(
        node, "'\(key)' must be a size in MiB or GiB, such as 512MiB or 4GiB, not \(shown(node))")
    }
    return bytes
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

  private func folders(_ node: Node, of key: String) throws(ConfigurationErrors) -> [String] {
    if isNull(node) { return [] }
    return withoutRepetitions(
      try each(of: node) { (element) throws(ConfigurationErrors) in try folder(element, of: key) })
  }

  private func folder(
    _ node: Node, of key: String, what: String = "a folder"
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

  /// The path of a folder whose last levels may be patterns: the part before the first pattern, then each level.
  private func folderPattern(_ node: Node) throws(ConfigurationErrors) -> (String, [String]) {
    let levels = try folder(node, of: "folder").split(separator: "/").map(String.init)
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

  private func duration(
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

  private func number(
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

  /// Reads the pairs of a mapping, in its order.
  ///
  /// - Parameters:
  ///   - place: Where it is, for messages.
  ///   - readValue: Called for each key that is known.
  /// - Throws: The mistakes in all pairs.
  private func read<Key: CaseIterable & RawRepresentable<String>>(
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
  private func each<Value>(
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

  private func withoutRepetitions(_ texts: [String]) -> [String] {
    var seen: Set<String> = []
    return texts.filter { seen.insert($0).inserted }
  }

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

  private func isNull(_ node: Node) -> Bool { node.null != nil }

  /// The value as the file has it, for "not …".
  private func shown(_ node: Node) -> String {
    switch node {
    case .scalar(let scalar): "'\(scalar.string)'"
    case .mapping: "keys and values"
    case .sequence: "a list"
    case .alias: "an alias"
    }
  }

  private func problem(_ node: Node, _ text: String) -> ConfigurationErrors {
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
