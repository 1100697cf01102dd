import InstarLinux
import InstarSchema
import InstarWire
import Yams

/// The keys at the top level whose values have keys of their own.
extension ConfigurationReader {
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

  func retry(_ node: Node) throws(ConfigurationErrors) -> Configuration.Retry {
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

  func retention(_ node: Node) throws(ConfigurationErrors) -> BackupRetention {
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

  func ledger(_ node: Node) throws(ConfigurationErrors) -> LedgerRetention {
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

  func rollout(_ node: Node) throws(ConfigurationErrors) -> RolloutSettings {
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

  func coordinator(_ node: Node) throws(ConfigurationErrors) -> CoordinatorSettings {
    var coordinator = CoordinatorSettings()
    try read(node, keys: CoordinatorKey.self, in: "'coordinator'") {
      (key, value) throws(ConfigurationErrors) in
      switch key {
      case .endpoints:
        coordinator.endpoints = try each(of: value, endpoint)
      case .ca: coordinator.authority = try path(value, of: "coordinator.ca", to: "a file")
      case .certificate:
        coordinator.certificate = try path(
          value, of: "coordinator.certificate", to: "a file")
      case .key: coordinator.key = try path(value, of: "coordinator.key", to: "a file")
      case .host: coordinator.host = try hostName(value)
      case .lease:
        coordinator.lease = try duration(
          value, of: "coordinator.lease", in: .seconds(5)...(.seconds(600)))
      case .onCoordinatorLoss: coordinator.onLoss = try choice(value, of: key.rawValue)
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

  /// The parts of an address such as 127.0.0.1:9464; `nil` if the text has no host or no port.
  private static func hostAndPort(_ text: some StringProtocol) -> (host: String, port: UInt16)? {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count > 1, let port = parts.last.flatMap({ UInt16($0) }), port > 0 else {
      return nil
    }
    let host = parts.dropLast().joined(separator: ":")
    return host.isEmpty ? nil : (host, port)
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

  func metrics(_ node: Node) throws(ConfigurationErrors) -> MetricsSettings {
    var metrics = MetricsSettings()
    try read(node, keys: MetricsKey.self, in: "'metrics'") {
      (key, value) throws(ConfigurationErrors) in
      switch key {
      case .listen: metrics.address = try address(value)
      case .textfile:
        let file = try path(value, of: "metrics.textfile", to: "a file")
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
      let socket = Node.scalar(
        Node.Scalar(String(text.dropFirst("unix:".count)), .implicit, .any, node.mark))
      return .socket(path: try path(socket, of: key, to: "a socket"))
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

  func hooks(_ node: Node) throws(ConfigurationErrors) -> HookSettings {
    var hooks = HookSettings()
    try read(node, keys: HookKey.self, in: "'hooks'") { (key, value) throws(ConfigurationErrors) in
      switch key {
      case .folder: hooks.folder = try path(value, of: "hooks.folder")
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
}
