internal import Instar
internal import InstarLinux
internal import Synchronization

/// Runs `instarctl` with the plugin that is tested, as an operator does: a keeper opens the store, and a confined
/// worker loads the plugin.
///
/// The plugin is built once in a process, from the sources of the package that a test belongs to, into its
/// `.build/plugin-test`.
struct PluginProcess {
  private static let plugins = Mutex<[String: String]>([:])

  let instarctl: String
  let plugin: String

  /// - Parameter source: The test's source.
  /// - Throws: `buildFailed` if the plugin does not compile; `incompleteInstallation` without `instarctl`.
  init(forTestIn source: String) throws {
    let environment = ProcessInfo.processInfo.environment
    instarctl = environment["INSTAR_BUILD_DIR"].map { $0 + "/instarctl" } ?? "/usr/bin/instarctl"
    let sources =
      environment["INSTAR_TEST_SOURCES"] ?? PackageFolder.url(of: ".", from: source).path
    let instarctl = instarctl
    plugin = try Self.plugins.withLock { plugins in
      if let known = plugins[sources] { return known }
      let folder = sources + "/.build/plugin-test"
      try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: true)
      let plugin = folder + "/TestedPlugin.so"
      let (status, output) = try Self.run(
        instarctl,
        ["plugin", "build", sources, "-o", plugin]
          + (Self.moduleName(of: sources).map { ["--module-name", $0] } ?? []))
      guard status == .exited(0) else {
        throw InstarError(
          .buildFailed, "cannot build the plugin of '\(sources)'", cause: output,
          next: "run: instarctl plugin build '\(sources)' -o Plugin.so")
      }
      plugins[sources] = plugin
      return plugin
    }
  }

  /// The name of the one folder in `Sources`, which is that of the module; `nil` without one.
  private static func moduleName(of package: String) -> String? {
    // A package without that folder has its sources elsewhere, and a module of any name.
    let folders = try? FileManager.default.contentsOfDirectory(atPath: package + "/Sources")
    let names = (folders ?? []).filter { !$0.hasPrefix(".") && !$0.contains(".") }
    return names.count == 1 ? names.first : nil
  }

  private static func run(
    _ program: String, _ arguments: [String]
  ) throws -> (ChildProcess.Termination?, String) {
    let process = try ChildProcess.start(
      executable: program, arguments: arguments, output: .captured(limitBytes: 1 << 20))
    let termination = try process.wait()
    return (termination, process.capturedOutput)
  }

  private func arguments(_ store: URL, _ stateFolder: String) -> [String] {
    ["migrate", "--plugin", plugin, "--state-dir", stateFolder, store.path]
  }

  /// Migrates a store to the last version of its plan.
  ///
  /// A keeper that lost its `instarctl` ends its step before it ends. On a busy machine that takes a while, in which
  /// another run finds the store busy.
  ///
  /// - Throws: `ExpectationFailure` with what `instarctl` printed, if it failed, or the store was busy for a minute.
  func migrate(_ store: URL, stateFolder: String) throws {
    let end = ContinuousClock.now + .seconds(60)
    var (status, output) = try Self.run(instarctl, arguments(store, stateFolder))
    while status == .exited(Self.busy), ContinuousClock.now < end {
      usleep(50_000)
      (status, output) = try Self.run(instarctl, arguments(store, stateFolder))
    }
    guard status == .exited(0) else {
      throw ExpectationFailure("instarctl could not migrate the store", [output])
    }
  }

  /// The exit status of `instarctl` for a busy store.
  private static let busy: Int32 = 4

  /// Begins to migrate a store, and kills one of the processes after a time.
  func migrate(
    _ store: URL, stateFolder: String, killing victim: Victim, after pause: Duration
  ) throws {
    let process = try ChildProcess.start(
      executable: instarctl, arguments: arguments(store, stateFolder), output: .null)
    let end = ContinuousClock.now + pause
    // A run that is faster has nothing to kill.
    if try process.wait(deadline: end) != nil { return }
    if victim == .instarctl {
      process.kill()
    } else {
      for child in Self.children(of: process.pid) { kill(child, SIGKILL) }
    }
    _ = try process.wait()
  }

  /// Which process of a run is killed.
  enum Victim: CaseIterable {
    case instarctl
    /// Its keepers; a worker ends with its keeper.
    case keeper
  }

  private static func children(of pid: Int32) -> [Int32] {
    // The kernel lists children by the thread that started them. A process that has ended meanwhile has none.
    let tasks = "/proc/\(pid)/task"
    let threads = (try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? []
    return threads.flatMap { thread -> [Int32] in
      let list = try? String(contentsOfFile: "\(tasks)/\(thread)/children", encoding: .utf8)
      return (list ?? "").split(separator: " ").compactMap { Int32($0) }
    }
  }
}
