import Foundation
import InstarLinux
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

@testable import InstarConfiguration

@Suite("Configuration")
struct ConfigurationTests {
  @Test("every key of a configuration is read")
  func allKeys() throws {
    let yaml = """
      state: /var/lib/instar/
      socket: /run/instar.sock
      plugins: [/opt/plugins, /srv/plugins]
      rescan: 1h
      debounce: 250ms
      retry: {first: 2s, most: 5m, attempts: 9}
      parallel: 4
      stageTimeLimit: 2h
      workerMemory: 512MiB
      busyTimeout: 0s
      backupFolder: /mnt/backups
      backupCompression: zstd
      backups: {keep: 3, age: 720h, size: 5GiB, totalSize: 100GiB}
      checkBackups: 12h
      ledger: {size: 2MiB, keep: 3}
      rollout: {canary: 5, waves: [10%, 50%], soak: 30m, budget: 2%}
      requireSignature: true
      trustedKeys: /etc/keys
      hooks: {folder: /etc/hooks, user: ops, timeout: 10s}
      coordinator:
        endpoints: ["https://etcd1:2379", "http://[::1]:2379"]
        ca: /etc/instar/ca.pem
        certificate: /etc/instar/host.pem
        key: /etc/instar/host.key
        host: web-1.example.com
        lease: 20s
        onCoordinatorLoss: finishWave
      metrics: {listen: "localhost:9464", textfile: /var/lib/instar.prom}
      watches:
        - folder: /srv/app
          pattern: "*.store"
        - folder: /home
          pattern: ["*.sqlite", "*.db"]
          recursive: true
          sqlDebug: 3
          backups: {keep: 1}
          whenBusy: migrate
          cutover: writeBack
          verify: full
          policy: ask
          wave: 2
          budget: 3
          busyTimeout: 30s
          backupFolder: /mnt/home
          backupCompression: none
          stageTimeLimit: 6h
          workerMemory: 1GiB
          plan: Notes
          window: {opens: ["Mon..Fri 22:00", "Sat,Sun *-*-* 00:00"], length: 6h}
          parallel: 1
          nice: 10
          diskPriority: idle
      """
    #expect(Self.keys(in: yaml, after: "") == Set(ConfigurationReader.Key.allCases.map(\.rawValue)))
    #expect(
      Self.keys(in: yaml, after: "    ")
        == Set(ConfigurationReader.WatchKey.allCases.map(\.rawValue)))
    let configuration = try Configuration(yaml: yaml, source: "instard.yml")
    #expect(configuration.stateFolder == "/var/lib/instar")
    #expect(configuration.socketPath == "/run/instar.sock")
    #expect(configuration.pluginFolders == ["/opt/plugins", "/srv/plugins"])
    #expect(configuration.rescanInterval == .seconds(3600))
    #expect(configuration.debounce == .milliseconds(250))
    #expect(
      configuration.retry == .init(first: .seconds(2), most: .seconds(300), attempts: 9))
    #expect(configuration.parallelRuns == 4)
    #expect(configuration.stageTimeLimit == .seconds(7200))
    #expect(configuration.workerMemoryBytes == 512 << 20)
    #expect(configuration.busyTimeout == .zero)
    #expect(configuration.backupFolder == "/mnt/backups")
    #expect(configuration.backupCompression == .zstd)
    #expect(
      configuration.backups
        == BackupRetention(
          count: 3, age: .seconds(720 * 3600), bytes: 5 << 30, totalBytes: 100 << 30))
    #expect(configuration.backupCheckInterval == .seconds(12 * 3600))
    #expect(configuration.rollout?.canary == .count(5))
    #expect(configuration.rollout?.waves == [.percent(10), .percent(50)])
    #expect(configuration.rollout?.soak == .seconds(1800))
    #expect(configuration.rollout?.budget == .percent(2))
    #expect(configuration.requiresSignature)
    #expect(configuration.trustedKeysFolder == "/etc/keys")
    #expect(configuration.hooks.folder == "/etc/hooks")
    #expect(configuration.hooks.user == "ops")
    #expect(configuration.hooks.timeLimit == .seconds(10))
    #expect(configuration.coordinator?.endpoints == ["https://etcd1:2379", "http://[::1]:2379"])
    #expect(configuration.coordinator?.authority == "/etc/instar/ca.pem")
    #expect(configuration.coordinator?.certificate == "/etc/instar/host.pem")
    #expect(configuration.coordinator?.key == "/etc/instar/host.key")
    #expect(configuration.coordinator?.host == "web-1.example.com")
    #expect(configuration.coordinator?.lease == .seconds(20))
    #expect(configuration.coordinator?.onLoss == .finishWave)
    #expect(configuration.metrics.address == .loopback(host: "127.0.0.1", port: 9464))
    #expect(configuration.metrics.textFile == "/var/lib/instar.prom")
    var home = Configuration.Watch(
      folder: "/home", patterns: ["*.sqlite", "*.db"], isRecursive: true, sqlDebugLevel: 3,
      backups: BackupRetention(count: 1), whenBusy: .migrate, cutover: .writeBack,
      verification: .full,
      busyTimeout: .seconds(30), backupFolder: "/mnt/home",
      backupCompression: BackupCompression.none, policy: .ask, wave: 2)
    home.budget = .count(3)
    home.stageTimeLimit = .seconds(6 * 3600)
    home.workerMemoryBytes = 1 << 30
    home.plans = ["Notes"]
    home.window = TimeWindow(
      opens: [try CalendarEvent("Mon..Fri 22:00"), try CalendarEvent("Sat,Sun *-*-* 00:00")],
      length: .seconds(6 * 3600))
    home.parallelRuns = 1
    home.priority.nice = 10
    home.priority.disk = .idle
    #expect(configuration.ledger == LedgerRetention(fileBytes: 2 << 20, files: 3))
    #expect(
      configuration.watches == [.init(folder: "/srv/app", patterns: ["*.store"]), home])
  }

  /// The keys that begin a line after this indentation. A dash of a list is a part of it.
  private static func keys(in yaml: String, after indentation: String) -> Set<String> {
    Set(
      yaml.replacing("- ", with: "  ").split(separator: "\n")
        .filter { $0.hasPrefix(indentation) && $0.dropFirst(indentation.count).first != " " }
        .map { String($0.dropFirst(indentation.count).prefix { $0 != ":" }) })
  }

  @Test(
    "a configuration that says nothing, or leaves its lists empty, means the defaults",
    arguments: ["", "\n\n", "# only a comment\n", "---\n", "watches:\n# - folder: /srv\n"])
  func empty(yaml: String) throws {
    #expect(try Configuration(yaml: yaml, source: "x") == Configuration())
  }

  @Test("the example configuration that is shipped can be used")
  func shippedExample() throws {
    let root = URL(fileURLWithPath: #filePath)
      .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    _ = try Configuration.read(path: root.path + "/packaging/instard.yml")
  }

  @Test(
    "what cannot be used in a configuration is named, with its line",
    arguments: [
      (
        "debouce: 1s",
        "line 1: unknown key 'debouce' in the configuration; did you mean 'debounce'?"
      ),
      (
        "\nwatches:\n  - folder: /srv\n    patern: x",
        "line 4: unknown key 'patern' in a watch; did you mean 'pattern'?"
      ),
      (
        "retry: {last: 1s}",
        "line 1: unknown key 'last' in 'retry'; the keys are first, most, attempts"
      ),
      (
        "\n\nrescan: 5",
        "line 3: 'rescan' must be a duration such as 250ms, 2s, 5m or 1h, not '5'"
      ),
      ("rescan: 10ms", "line 1: 'rescan' must be between 1s and 24h, not '10ms'"),
      ("parallel: 0", "line 1: 'parallel' must be a number from 1 to 64, not '0'"),
      (
        "backupCompression: zst",
        "line 1: 'backupCompression' must be none or zstd, not 'zst'; did you mean 'zstd'?"
      ),
      (
        "coordinator: {endpoints: [etcd1:2379]}",
        "line 1: 'coordinator.endpoints' must be addresses such as "
          + "https://etcd1.example.com:2379, not 'etcd1:2379'"
      ),
      (
        "coordinator: {endpoints: https://etcd1/v3}",
        "line 1: 'coordinator.endpoints' must be addresses such as "
          + "https://etcd1.example.com:2379, not 'https://etcd1/v3'"
      ),
      (
        "coordinator: {endpoints: \"https://:2379\"}",
        "line 1: 'coordinator.endpoints' must be addresses such as "
          + "https://etcd1.example.com:2379, not 'https://:2379'"
      ),
      (
        "coordinator: {endpoints: http://etcd1:2379}",
        "line 1: 'coordinator.endpoints' must begin with https:// for another machine, not "
          + "'http://etcd1:2379': without TLS, anybody on the network could begin a rollout"
      ),
      ("coordinator: {}", "line 1: 'coordinator' must name the 'endpoints' of etcd"),
      (
        "coordinator: {endpoints: https://etcd1:2379, key: /k}",
        "line 1: 'coordinator' must name both 'certificate' and 'key', or neither"
      ),
      (
        "coordinator: {endpoints: https://etcd1:2379, host: a/b}",
        "line 1: 'coordinator.host' must have letters, digits, dots, underscores and hyphens, at most "
          + "253, not 'a/b'"
      ),
      (
        "coordinator: {endpoints: https://etcd1:2379, lease: 1s}",
        "line 1: 'coordinator.lease' must be between 5s and 10m, not '1s'"
      ),
      (
        "coordinator: {endpoints: https://etcd1:2379, onCoordinatorLoss: stop}",
        "line 1: 'onCoordinatorLoss' must be pause or finishWave, not 'stop'"
      ),
      (
        "metrics: {listen: 0.0.0.0:9464}",
        "line 1: 'metrics.listen' must be on the loopback interface, such as 127.0.0.1:9464, "
          + "not '0.0.0.0:9464': instard serves its metrics to this machine only"
      ),
      (
        "metrics: {listen: \"[::]:9464\"}",
        "line 1: 'metrics.listen' must be on the loopback interface, such as 127.0.0.1:9464, "
          + "not '[::]:9464': instard serves its metrics to this machine only"
      ),
      (
        "metrics: {listen: 127.0.0.1}",
        "line 1: 'metrics.listen' must be an address such as 127.0.0.1:9464 or "
          + "unix:/run/instar/metrics.sock, not '127.0.0.1'"
      ),
      (
        "metrics: {listen: unix:metrics.sock}",
        "line 1: 'metrics.listen' must be an absolute path, not 'metrics.sock'"
      ),
      (
        "metrics: {textfile: /srv/instar.txt}",
        "line 1: 'metrics.textfile' must end in .prom, not '/srv/instar.txt': "
          + "node_exporter reads no other file"
      ),
      (
        "metrics: {lisen: x}",
        "line 1: unknown key 'lisen' in 'metrics'; did you mean 'listen'?"
      ),
      ("parallel: many", "line 1: 'parallel' must be a number from 1 to 64, not 'many'"),
      (
        "retry: {first: 1h, most: 1s}",
        "line 1: 'retry.first' (1 h) is longer than 'retry.most' (1 s)"
      ),
      ("retry: 5s", "line 1: 'retry' must have keys with values, not '5s'"),
      ("state: var/lib", "line 1: 'state' must be an absolute path, not 'var/lib'"),
      ("state:\n", "line 1: 'state' must be the path of a folder"),
      ("plugins: [/a/../b]", "line 1: 'plugins' must not contain '.' or '..': '/a/../b'"),
      ("watches: /srv", "line 1: 'watches' must be a list, each with a 'folder'"),
      ("watches:\n  - pattern: x", "line 2: a watch has no 'folder'"),
      (
        "watches:\n  - folder: /srv\n  - folder: /srv/",
        "line 3: '/srv' is watched twice; give one watch several patterns"
      ),
      (
        "watches:\n  - folder: /srv\n    pattern: a/*.db",
        "line 3: 'pattern' matches file names and cannot contain a slash: 'a/*.db'"
      ),
      ("watches:\n  - folder: /srv\n    pattern: []", "line 3: 'pattern' is an empty list"),
      (
        "watches:\n  - folder: /srv\n    recursive: perhaps",
        "line 3: 'recursive' must be true or false, not 'perhaps'"
      ),
      (
        "watches:\n  - folder: /srv\n    whenBusy: migrat",
        "line 3: 'whenBusy' must be wait, migrate or skip, not 'migrat'; did you mean 'migrate'?"
      ),
      (
        "watches:\n  - folder: /srv\n    cutover: fast",
        "line 3: 'cutover' must be automatic, exchange or writeBack, not 'fast'"
      ),
      (
        "watches:\n  - folder: /srv\n    verify: ful",
        "line 3: 'verify' must be standard or full, not 'ful'; did you mean 'full'?"
      ),
      (
        "watches:\n  - folder: /srv\n    whenbusy: wait",
        "line 3: unknown key 'whenbusy' in a watch; did you mean 'whenBusy'?"
      ),
      (
        "watches:\n  - folder: /srv\n    busyTimeout: 2h",
        "line 3: 'busyTimeout' must be between 0s and 1h, not '2h'"
      ),
      (
        "watches:\n  - folder: /srv\n    sqlDebug: 5",
        "line 3: 'sqlDebug' must be a number from 0 to 4, not '5'"
      ),
      (
        "watches:\n  - folder: /srv\n    diskPriority: 8",
        "line 3: 'diskPriority' must be idle, or a number from 0 (first) to 7 (last), not '8'"
      ),
      (
        "watches:\n  - folder: /srv/**",
        "line 2: 'folder' cannot contain '**'; to watch all folders below, write 'recursive: true'"
      ),
      (
        "watches: [{folder: /srv/*}, {folder: '/srv/*/'}]",
        "line 1: '/srv/*' is watched twice; give one watch several patterns"
      ),
      (
        "watches:\n  - folder: /srv\n    window: {opens: daily, length: 10s}",
        "line 3: 'window.length' must be between 1m and 744h, not '10s'"
      ),
      (
        "watches:\n  - folder: /srv\n    window: {opens: '25:00', length: 1h}",
        "line 3: 'window.opens' must be a calendar event in the syntax of systemd.time(7), not '25:00': "
          + "Failed to parse calendar specification '25:00': Invalid argument"
      ),
      (
        "watches:\n  - folder: /srv\n    window: {length: 1h}",
        "line 3: 'window' must say when it opens ('opens'), such as "
          + "{opens: \"Mon..Fri 22:00\", length: 6h}"
      ),
      (
        "rollout: {canary: 0}",
        "line 1: 'rollout.canary' must be a number of stores such as 5, or a share up to 100% such as 10%, not '0'"
      ),
      (
        "rollout: {waves: [50%, 10%]}",
        "line 1: each wave of 'rollout' includes the earlier ones, so it must be larger; "
          + "50% is not less than 10%"
      ),
      ("hooks: {folder: hooks}", "line 1: 'hooks.folder' must be an absolute path, not 'hooks'"),
      ("hooks: {user: [a]}", "line 1: 'hooks.user' must be the name of a user, not a list"),
      (
        "hooks: {timeout: 2h}",
        "line 1: 'hooks.timeout' must be between 100ms and 1h, not '2h'"
      ),
      ("hooks: {timout: 2s}", "line 1: unknown key 'timout' in 'hooks'; did you mean 'timeout'?"),
      (
        "rollout: {buget: 1%}",
        "line 1: unknown key 'buget' in 'rollout'; did you mean 'budget'?"
      ),
      (
        "watches:\n  - folder: /srv\n    policy: rehears",
        "line 3: 'policy' must be automatic, rehearse or ask, not 'rehears'; did you mean 'rehearse'?"
      ),
      ("just text", "line 1: the configuration must have keys with values, not 'just text'"),
      ("rescan: 1m\nrescan: 2m", "line 2: 'rescan' is given more than once"),
      (
        "watches:\n  - folder: /srv\n    wave: 1\n    nice: 2\n    wave: 2",
        "line 5: 'wave' is given more than once"
      ),
      ("retry: [5s]", "line 1: 'retry' must have keys with values, not a list"),
      (
        "parallel: \"4\"",
        "line 1: 'parallel' must be a number from 1 to 64, not '4'; write it without quotes"
      ),
      (
        "watches:\n\t- folder: /srv",
        "line 2: found character that cannot start any token; "
          + "the line begins with a tab, and YAML is indented with spaces"
      ),
      (
        "watches:\n  - {folder: /srv, policy: auto}",
        "line 2: 'policy' must be automatic, rehearse or ask, not 'auto'; did you mean 'automatic'?"
      ),
      (
        "watches:\n  - {folder: /srv, pattern: \"*.stor[e\"}",
        "line 2: '[' has no ']' in the pattern '*.stor[e'; write '[[]' for the letter '['"
      ),
      (
        "watches:\n  - {folder: \"/srv/[a\"}",
        "line 2: '[' has no ']' in the folder '[a'; write '[[]' for the letter '['"
      ),
      (
        "watches:\n  - {folder: /srv, window: {opens: Mon}}",
        "line 2: 'window' must say how long it stays open ('length'), such as {opens: \"Mon..Fri 22:00\", length: 6h}"
      ),
      ("watches: [", "line 2: did not find expected node content"),
    ])
  func errors(yaml: String, cause: String) {
    do {
      _ = try Configuration(yaml: yaml, source: "/etc/x.yml")
      Issue.record("was taken: \(yaml)")
    } catch {
      #expect(error.cause == cause)
      #expect(error.code == .invalidConfiguration)
      #expect(error.what == "cannot use the configuration '/etc/x.yml'")
      #expect(error.next == "correct the file, then run: instarctl config check '/etc/x.yml'")
    }
  }

  @Test(
    "metrics are served on the loopback interface or a socket",
    arguments: [
      ("127.0.0.1:9464", "127.0.0.1:9464"), ("localhost:1", "127.0.0.1:1"),
      ("127.1.2.3:65535", "127.1.2.3:65535"), ("[::1]:9464", "[::1]:9464"),
      ("unix:/run/instar/metrics.sock", "unix:/run/instar/metrics.sock"),
    ])
  func metrics(_ text: String, _ address: String) throws {
    let configuration = try Configuration(
      yaml: "metrics: {listen: \"\(text)\"}", source: "instard.yml")
    #expect(configuration.metrics.address?.description == address)
    #expect(configuration.metrics.areRead && !Configuration().metrics.areRead)
  }

  @Test(
    "a rollout has a canary, waves, a time to soak and a budget; a watch has a policy and a wave")
  func rollout() throws {
    let configuration = try Configuration(
      yaml: """
        rollout: {canary: 2, waves: [10%, 50%], soak: 30m, budget: 0.5%}
        retry: {attempts: 7}
        watches:
          - {folder: /srv, policy: ask, wave: 3, budget: 0}
        """, source: "x.yml")
    let rollout = try #require(configuration.rollout)
    #expect(rollout.steps == [.count(2), .percent(10), .percent(50), .percent(100)])
    #expect(rollout.soak == .seconds(1800) && rollout.budget == .percent(0.5))
    #expect(configuration.retry.attempts == 7)
    #expect(configuration.watches.first?.policy == .ask && configuration.watches.first?.wave == 3)
    #expect(configuration.rolloutSettings.watchBudgets == ["/srv": .count(0)])
  }

  @Test("the last levels of a watched folder may be patterns")
  func folderPatterns() throws {
    let watches = try Configuration(
      yaml: "watches: [{folder: /srv/*/stores}, {folder: '/srv/?/[ab]*'}, {folder: /*}]",
      source: "x.yml"
    ).watches
    #expect(watches.map(\.folder) == ["/srv", "/srv", "/"])
    #expect(watches.map(\.subfolders) == [["*", "stores"], ["?", "[ab]*"], ["*"]])
    #expect(watches.map(\.path) == ["/srv/*/stores", "/srv/?/[ab]*", "/*"])
  }

  @Test("a rescan follows after five minutes, later where it takes long, or as configured")
  func rescans() throws {
    var configuration = Configuration()
    #expect(configuration.rescanDelay(after: .milliseconds(7)) == .seconds(300))
    #expect(configuration.rescanDelay(after: .milliseconds(400)) == .seconds(1600))
    #expect(configuration.rescanDelay(after: .seconds(60)) == .seconds(3600))
    configuration.rescanInterval = .seconds(20)
    #expect(configuration.rescanDelay(after: .seconds(60)) == .seconds(20))
  }

  @Test("the files of conf.d come after the file, in the order of their names; lists add up")
  func pieces() throws {
    let folder = try TemporaryFolder()
    try FileManager.default.createDirectory(
      atPath: folder.path("conf.d"), withIntermediateDirectories: false)
    try folder.file(
      "x.yml",
      """
      parallel: 3
      rescan: 1m
      plugins: [/p/main]
      watches: [{folder: /srv/a}, {folder: /srv/b}]
      """.utf8)
    try folder.file(
      "conf.d/20.yml",
      "parallel: 4\nwatches: [{folder: /srv/a, pattern: '*.db'}, {folder: /srv/c}]".utf8)
    try folder.file("conf.d/10.yml", "parallel: 5\nplugins: [/p/more, /p/main]".utf8)
    for name in ["off.yml.bak", ".hidden.yml", "README"] {
      try folder.file("conf.d/\(name)", "no: configuration".utf8)
    }
    let configuration = try Configuration.read(path: folder.path("x.yml"))
    #expect(configuration.parallelRuns == 4)
    #expect(configuration.rescanInterval == .seconds(60))
    #expect(configuration.pluginFolders == ["/p/main", "/p/more"])
    #expect(configuration.watches.map(\.folder) == ["/srv/a", "/srv/b", "/srv/c"])
    #expect(configuration.watches.first?.patterns == ["*.db"])
    #expect(
      try Configuration.files(path: folder.path("x.yml"))
        == ["x.yml", "conf.d/10.yml", "conf.d/20.yml"].map { "\(folder.path)/\($0)" })

    try folder.file("conf.d/30.yml", "parallel: many".utf8)
    let error = #expect(throws: InstarError.self) {
      try Configuration.read(path: folder.path("x.yml"))
    }
    #expect(error?.what == "cannot use the configuration '\(folder.path)/conf.d/30.yml'")
  }

  @Test("a check finds the mistakes of all files, sections and lists, in their order")
  func allMistakes() throws {
    let folder = try TemporaryFolder()
    try FileManager.default.createDirectory(
      atPath: folder.path("conf.d"), withIntermediateDirectories: false)
    try folder.file(
      "x.yml",
      """
      paralel: 3
      parallel: 5
      retry: {first: soon, moste: 1h}
      plugins: [a, /b, c]
      watches:
        - {folder: /srv/a, policy: rehears, wave: 0}
        - pattern: x
        - folder: /srv/b
        - folder: /srv/b
      """.utf8)
    try folder.file("conf.d/10.yml", "watches: [".utf8)
    try folder.file("conf.d/20.yml", "rescan: 1m\nledger: {keep: 0}".utf8)
    let (configuration, errors) = Configuration.check(path: folder.path("x.yml"))
    #expect(
      errors.map(\.cause) == [
        "line 1: unknown key 'paralel' in the configuration; did you mean 'parallel'?",
        "line 3: 'retry.first' must be a duration such as 250ms, 2s, 5m or 1h, not 'soon'",
        "line 3: unknown key 'moste' in 'retry'; did you mean 'most'?",
        "line 4: 'plugins' must be an absolute path, not 'a'",
        "line 4: 'plugins' must be an absolute path, not 'c'",
        "line 6: 'policy' must be automatic, rehearse or ask, not 'rehears'; did you mean 'rehearse'?",
        "line 6: 'wave' must be a number from 1 to 100, not '0'",
        "line 7: a watch has no 'folder'",
        "line 9: '/srv/b' is watched twice; give one watch several patterns",
        "line 2: did not find expected node content",
        "line 2: 'ledger.keep' must be a number from 1 to 1000, not '0'",
      ])
    let files = ["x.yml", "conf.d/10.yml", "conf.d/20.yml"].map { folder.path($0) }
    #expect(
      errors.map(\.what)
        == zip(files, [9, 1, 1]).flatMap { file, count in
          [String](repeating: "cannot use the configuration '\(file)'", count: count)
        })
    #expect(configuration.parallelRuns == 5 && configuration.rescanInterval == .seconds(60))
    let first = #expect(throws: InstarError.self) {
      try Configuration.read(path: folder.path("x.yml"))
    }
    #expect(first == errors.first)
  }

  @Test("a drop-in without a configuration's plugins leaves the built-in ones")
  func builtInPlugins() throws {
    let folder = try TemporaryFolder()
    try FileManager.default.createDirectory(
      atPath: folder.path("conf.d"), withIntermediateDirectories: false)
    try folder.file("x.yml", "".utf8)
    try folder.file("conf.d/a.yml", "parallel: 2".utf8)
    #expect(
      try Configuration.read(path: folder.path("x.yml")).pluginFolders
        == Configuration().pluginFolders)
    // The first file that names some replaces them.
    try folder.file("conf.d/b.yml", "plugins: /p".utf8)
    #expect(try Configuration.read(path: folder.path("x.yml")).pluginFolders == ["/p"])
  }

  @Test("a configuration file that is missing, or not text, is named")
  func unreadableFile() throws {
    #expect(throws: InstarError.self) { try Configuration.read(path: "/nonexistent/x.yml") }
    let folder = try TemporaryFolder()
    try folder.file("x.yml", [0xFF, 0xFE, 0xFD])
    let error = #expect(throws: InstarError.self) {
      try Configuration.read(path: folder.path("x.yml"))
    }
    #expect(error?.cause == "the file is not UTF-8 text")
  }

  @Test("a link of conf.d to a file that does not exist is named, and not to be created")
  func brokenLink() throws {
    let folder = try TemporaryFolder()
    try FileManager.default.createDirectory(
      atPath: folder.path("conf.d"), withIntermediateDirectories: false)
    try folder.file("x.yml", "".utf8)
    let link = folder.path("conf.d/50.yml")
    try FileManager.default.createSymbolicLink(
      atPath: link, withDestinationPath: "/nonexistent/50.yml")
    let error = #expect(throws: InstarError.self) {
      try Configuration.read(path: folder.path("x.yml"))
    }
    #expect(error?.code == .invalidConfiguration)
    #expect(error?.what == "cannot read the configuration '\(link)'")
    #expect(error?.next == "remove or repair the link; run: ls -l '\(link)'")
  }

  @Test(
    "durations are read and shown in their units",
    arguments: [
      ("0s", Duration.zero, "0 s"), ("250ms", .milliseconds(250), "250 ms"),
      ("90s", .seconds(90), "90 s"), ("5m", .seconds(300), "5 min"), ("1h", .seconds(3600), "1 h"),
    ])
  func durations(text: String, duration: Duration, shown: String) {
    #expect(DurationText.parse(text) == duration)
    #expect(DurationText.format(duration) == shown)
  }

  @Test(
    "text that is not a duration is not read as one",
    arguments: ["", "5", "s", "-1s", "1.5s", "1 s", "5min", "99999999999999999999s", "999999h"])
  func noDurations(text: String) {
    #expect(DurationText.parse(text) == nil)
  }

  @Test("signatures can be required, by the keys of a folder")
  func signatures() throws {
    let usual = try Configuration(yaml: "", source: "c")
    #expect(!usual.requiresSignature && usual.trustedKeysFolder == "/etc/instar/trusted-keys.d")
    let text = "requireSignature: true\ntrustedKeys: /srv/keys"
    let strict = try Configuration(yaml: text, source: "c")
    #expect(strict.requiresSignature && strict.trustedKeysFolder == "/srv/keys")
    let error = #expect(throws: InstarError.self) {
      try Configuration(yaml: "requireSignature: maybe", source: "c")
    }
    #expect(error?.cause == "line 1: 'requireSignature' must be true or false, not 'maybe'")
  }

  @Test("hooks have a folder, a user and a time limit")
  func hooks() throws {
    var hooks = try Configuration(yaml: "hooks:", source: "c").hooks
    #expect(hooks == HookSettings())
    let text = "hooks: {folder: /srv/hooks/, user: ops, timeout: 90s}"
    hooks = try Configuration(yaml: text, source: "c").hooks
    #expect(hooks.folder == "/srv/hooks" && hooks.user == "ops")
    #expect(hooks.timeLimit == .seconds(90))
  }
}
