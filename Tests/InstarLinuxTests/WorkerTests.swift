import Foundation
import Glibc
import InstarLinux
import InstarSchema
import InstarTestSupport
import InstarWire
import Synchronization
import Testing

/// The launcher with a stand-in for the engine and plugins in C, on the kernel that runs: what the
/// constructors of a plugin can do.
@Suite("instar-worker")
struct WorkerTests {
  let folder: TemporaryFolder
  let programs: WorkerPrograms

  init() throws {
    folder = try TemporaryFolder(mode: 0o700)
    programs = try WorkerPrograms.shared.get()
    for name in ["clone", "outside"] {
      try FileManager.default.createDirectory(
        atPath: folder.path(name), withIntermediateDirectories: false)
    }
    try folder.write("secret", to: "outside/file")
  }

  /// Starts the worker and returns every line it says until it ends, and how it ended.
  func run(
    plugin: String, through launcher: [String] = [], library: String? = nil,
    options: [String] = [], environment: [String: String]? = nil, isForked: Bool = false
  ) throws -> (lines: [String], end: ChildProcess.Termination?, output: String) {
    let (channel, descriptor) = try LineChannel.pair()
    let command =
      launcher + [
        programs.worker, "--library", library ?? programs.library, "--plugin", plugin,
        "--clone-folder", folder.path("clone"),
      ] + options
    var variables = ProcessInfo.processInfo.environment
    variables["OUTSIDE"] = folder.path("outside")
    variables["CLONE"] = folder.path("clone")
    variables.merge(environment ?? [:]) { $1 }
    let arguments = Array(command.dropFirst())
    let output = ChildProcess.Output.captured(limitBytes: 10_000)
    let child =
      isForked
      ? try forkServer(variables).start(arguments: arguments, channel: descriptor, output: output)
      : try ChildProcess.start(
        executable: command[0], arguments: arguments, environment: variables, channel: descriptor,
        output: output)
    close(descriptor)
    var lines: [String] = []
    while case .line(let line) = try channel.receive(deadline: soon()) {
      lines.append(String(decoding: line, as: UTF8.self))
    }
    return (lines, try child.wait(deadline: soon()), child.capturedOutput)
  }

  func forkServer(_ variables: [String: String] = [:]) throws -> ForkServer {
    try ForkServer(
      executable: programs.worker, arguments: ["--serve", "--library", programs.library],
      environment: variables)
  }

  func failure(_ lines: [String]) throws -> InstarError {
    let line = try #require(lines.first)
    #expect(lines.count == 1)
    guard case .failed(let error) = try WireCoder.message(WorkerEvent.self, from: Data(line.utf8))
    else { throw CancellationError() }
    return error
  }

  @Test("a plugin is handed to the engine, whose result is the exit status")
  func good() throws {
    let (lines, end, _) = try run(plugin: programs.good)
    #expect(lines == ["plugin \(programs.good) plans 42 temporary \(folder.path("clone"))"])
    #expect(end == .exited(23))
  }

  @Test("a fork server forks one worker after the other, each in a new process")
  func forked() throws {
    let server = try forkServer(ProcessInfo.processInfo.environment)
    for number in 1...3 {
      let (channel, descriptor) = try LineChannel.pair()
      let child = try server.start(
        arguments: ["--library", programs.library, "--plugin", programs.good],
        channel: descriptor, output: .captured(limitBytes: 1000))
      close(descriptor)
      var lines: [String] = []
      while case .line(let line) = try channel.receive(deadline: soon()) {
        lines.append(String(decoding: line, as: UTF8.self))
      }
      #expect(
        lines == ["after a fork: call 1, plugin \(programs.good) plans 42 temporary none"],
        "worker \(number)")
      #expect(try child.wait(deadline: soon()) == .exited(23))
    }
  }

  @Test("a worker that a fork server forked is killed like another one, and dies with its server")
  func forkedAndKilled() throws {
    func start(_ server: ForkServer) throws -> ChildProcess {
      let (channel, descriptor) = try LineChannel.pair()
      defer { close(descriptor) }
      let child = try server.start(
        arguments: ["--library", programs.library, "--plugin", programs.endless],
        channel: descriptor, output: .null)
      guard case .line = try channel.receive(deadline: soon()) else { throw CancellationError() }
      return child
    }
    let server = try forkServer()
    var child = try start(server)
    #expect(try child.wait(deadline: .now) == nil)
    child.kill(SIGTERM)
    #expect(try child.wait(deadline: soon()) == .signaled(SIGTERM))

    child = try start(server)
    #expect(kill(try parent(of: child.pid), SIGKILL) == 0)
    #expect(try child.wait(deadline: soon()) == .signaled(SIGKILL))
    #expect(throws: InstarError.self) { try start(server) }
  }

  private func parent(of process: Int32) throws -> Int32 {
    let status = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
    let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("PPid:") })
    return try #require(Int32(line.dropFirst(5).trimmingCharacters(in: .whitespaces)))
  }

  @Test(
    "the constructor of a plugin can work in the clone folder and nowhere else, and can start and reach nothing",
    arguments: [false, true]
  )
  func confinement(isForked: Bool) throws {
    let (lines, end, output) = try run(plugin: programs.hostile, isForked: isForked)
    #expect(end == .exited(23), "\(output)")
    var results: [String: String] = [:]
    for line in lines where line.hasPrefix("try ") {
      let words = line.split(separator: " ")
      results[String(words[1])] = String(words[2])
    }
    let allowed = [
      "create-inside", "truncate-inside", "make-folder-inside", "rename-inside", "remove-inside",
      "read-library", "read-zone", "read-random", "stack-bounds", "start-thread", "signal-itself",
      "own-limit", "own-priority", "is-terminal", "read-own-status",
    ]
    for name in allowed { #expect(results[name] == "0", "\(name)") }
    let refused: [String: [Int32]] = [
      "read-outside": [EACCES], "write-outside": [EACCES], "create-outside": [EACCES],
      "remove-outside": [EACCES], "list-outside": [EACCES], "truncate-outside": [EPERM],
      "truncate-by-open": [EPERM], "rename-out": [EACCES, EXDEV], "rename-in": [EACCES, EXDEV],
      "link-in": [EACCES, EXDEV, EPERM], "symlink-inside": [EACCES], "fifo-inside": [EACCES],
      "mode-outside": [EPERM], "times-outside": [EPERM], "attribute-outside": [EPERM],
      "owner-outside": [EPERM], "fork": [EPERM], "vfork": [EPERM], "spawn": [EPERM],
      "exec": [EPERM], "clone3": [ENOSYS], "openat2": [ENOSYS], "unknown-call": [ENOSYS],
      "socket": [EPERM], "socket-pair": [EPERM], "signal-parent": [EPERM],
      "signal-group": [EPERM], "signal-by-owner": [EPERM], "trace-parent": [EPERM],
      "read-parent-environment": [EACCES], "read-parent-memory": [EACCES],
      "read-through-parent": [EACCES], "write-own-memory": [EACCES], "list-processes": [EACCES],
      "read-kernel-memory": [EPERM, EACCES, ENOENT], "write-setting": [EACCES],
      "parent-priority": [EPERM], "parent-limit": [EPERM], "new-session": [EPERM],
      "no-death-signal": [EPERM],
      "new-namespace": [EPERM], "mount": [EPERM], "ring": [EPERM], "shared-memory": [EPERM],
      "terminal-input": [ENOTTY],
    ]
    for (name, expected) in refused {
      #expect(
        expected.map(String.init).contains(results[name] ?? "missing"),
        "\(name): \(results[name] ?? "missing")")
    }
    #expect(results.count == allowed.count + refused.count)
    #expect(try folder.text(of: "outside/file") == "secret")
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path("outside")) == ["file"])
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: folder.path("clone")).sorted()
        == [".cache", ".local", "Documents"])
  }

  @Test("a plugin that needs what this engine does not have is told to be of another version")
  func otherInterface() throws {
    for (symbol, code) in [
      ("s11InstarModel4GoneVMa", InstarError.Code.wrongABI), ("somebody_else", .pluginLoadFailed),
    ] {
      let source = try folder.write(
        "extern char \(symbol);\nchar *reference = &\(symbol);\n", to: "plugin.c")
      let plugin = folder.path("plugin.so")
      try compileC([source], to: plugin, ["-shared", "-fPIC", "-nostdlib"])
      let (lines, _, _) = try run(plugin: plugin)
      let error = try failure(lines)
      #expect(error.code == code)
      #expect(error.cause.contains(symbol))
      #expect(
        error.next
          == "build the plugin again with this version of Instar: instarctl plugin build SOURCES "
          + "-o '\(plugin)'")
    }
  }

  @Test("a plugin whose library is missing is told so, with a command for its own path")
  func missingLibrary() throws {
    let library = try folder.write("char helper;\n", to: "helper.c")
    try compileC([library], to: folder.path("libhelper.so"), ["-shared", "-fPIC", "-nostdlib"])
    let source = try folder.write(
      "extern char helper;\nchar *reference = &helper;\n", to: "plugin.c")
    let plugin = folder.path("its plugin.so")
    try compileC(
      [source, folder.path("libhelper.so")], to: plugin, ["-shared", "-fPIC", "-nostdlib"])
    try FileManager.default.removeItem(atPath: folder.path("libhelper.so"))
    let error = try failure(try run(plugin: plugin).lines)
    #expect(error.code == .pluginLoadFailed && error.cause.contains("libhelper.so"))
    #expect(
      error.next
        == "install the library that the cause names, or build the plugin without it: "
        + "instarctl plugin build SOURCES -o '\(plugin)'")
  }

  @Test("threads of a plugin end with the worker, and the worker ends when it is killed")
  func killed() throws {
    let (channel, descriptor) = try LineChannel.pair()
    let child = try ChildProcess.start(
      executable: programs.worker,
      arguments: ["--library", programs.library, "--plugin", programs.endless], channel: descriptor)
    close(descriptor)
    #expect(try channel.receive(deadline: soon()) == .line(Data("waiting".utf8)))
    child.kill()
    #expect(try child.wait(deadline: soon()) == .signaled(SIGKILL))
    #expect(try channel.receive(deadline: soon()) == .closed)
  }

  @Test("a worker dies with the keeper that started it")
  func orphaned() throws {
    let keeper = try ChildProcess.start(
      executable: programs.parent,
      arguments: [programs.worker, "--library", programs.library, "--plugin", programs.endless],
      output: .captured(limitBytes: 100))
    try keeper.waitForOutput()
    let worker = try #require(
      pid_t(keeper.capturedOutput.trimmingCharacters(in: .whitespacesAndNewlines)))
    kill(keeper.pid, SIGKILL)
    #expect(try keeper.wait(deadline: soon()) == .signaled(SIGKILL))
    #expect(isGone(worker))
  }

  @Test(
    "a plugin that cannot be loaded is one line that reads as the engine's own error, whatever its path"
  )
  func unloadable() throws {
    let path = folder.path("quote\" newline\n tab\t \u{1} ü 🪲.so")
    try Data("no plugin".utf8).write(to: URL(fileURLWithPath: path))
    let (lines, end, _) = try run(plugin: path)
    let error = try failure(lines)
    #expect(error.code == .pluginLoadFailed)
    #expect(error.what == "cannot load plugin '\(path)'")
    #expect(error.cause.contains("invalid ELF header") || error.cause.contains("file too short"))
    #expect(error.next != nil)
    #expect(end == .exited(1))
  }

  @Test("a library that is not a plugin and one that is not the engine are different errors")
  func wrongLibraries() throws {
    let noPlugin = try failure(try run(plugin: programs.library).lines)
    #expect(noPlugin.code == .notAPlugin)
    #expect(noPlugin.cause.contains("instar_plugin_plans"))
    let noEngine = try failure(try run(plugin: programs.good, library: programs.threaded).lines)
    #expect(noEngine.code == .incompleteInstallation)
    #expect(noEngine.cause.contains("instar_worker_main"))
  }

  @Test("a thread that exists before the confinement is refused: it would not be confined")
  func threadBefore() throws {
    let (lines, end, _) = try run(
      plugin: programs.good, environment: ["LD_PRELOAD": programs.threaded])
    let error = try failure(lines)
    #expect(error.code == .pluginLoadFailed)
    #expect(error.cause.contains("thread"))
    #expect(end == .exited(1))
  }

  @Test(
    "without Landlock the worker refuses, and with --allow-unconfined says so and goes on without it"
  )
  func withoutLandlock() throws {
    let refused = try run(plugin: programs.good, through: [programs.withoutLandlock])
    let error = try failure(refused.lines)
    #expect(error.code == .pluginLoadFailed)
    #expect(error.cause.contains("Landlock"))
    #expect(error.next?.contains("unconfined") == true)
    let allowed = try run(
      plugin: programs.hostile, through: [programs.withoutLandlock],
      options: ["--allow-unconfined"])
    #expect(allowed.end == .exited(23))
    #expect(allowed.output.contains("warning: the kernel has no Landlock"))
    #expect(allowed.lines.contains("try list-outside 0"))
    #expect(allowed.lines.contains("try fork \(EPERM)"))
    #expect(allowed.lines.contains("try socket \(EPERM)"))
  }

  @Test("wrong use of instar-worker exits with 2 and teaches, help exits with 0")
  func usage() throws {
    for arguments in [
      [], ["--library", "/a"], ["--nonsense"], ["--library", "a", "--plugin", "b"],
    ] {
      let child = try ChildProcess.start(
        executable: programs.worker, arguments: arguments, output: .captured(limitBytes: 4000))
      #expect(try child.wait() == .exited(2))
      #expect(child.capturedOutput.contains("usage: instar-worker"))
    }
    let child = try ChildProcess.start(
      executable: programs.worker, arguments: ["--help"], output: .captured(limitBytes: 4000))
    #expect(try child.wait() == .exited(0))
    #expect(child.capturedOutput.contains("--clone-folder"))
  }
}

/// What the tests of the worker run, compiled once.
final class WorkerPrograms: Sendable {
  static let shared = Result { try WorkerPrograms() }

  let worker, library, good, hostile, endless, threaded, parent, withoutLandlock: String
  private let folder: TemporaryFolder

  private init() throws {
    let folder = try TemporaryFolder(mode: 0o700)
    let sources = packageFolder + "/Sources"
    let fixtures = packageFolder + "/Tests/InstarLinuxTests/Fixtures"
    worker = folder.path("instar-worker")
    try compileC(
      [sources + "/instar-worker/main.c"]
        + ["Confinement.c", "ForkServer.c", "SystemCalls.c"].map { sources + "/CInstar/" + $0 },
      to: worker, ["-I", sources + "/CInstar/include", "-Wall", "-Wextra", "-Werror"])
    func library(_ name: String) throws -> String {
      let output = folder.path("\(name).so")
      try compileC(["\(fixtures)/\(name).c"], to: output, ["-shared", "-fPIC", "-pthread"])
      return output
    }
    func program(_ name: String) throws -> String {
      try compileC(["\(fixtures)/\(name).c"], to: folder.path(name), [])
      return folder.path(name)
    }
    self.library = try library("engine")
    good = try library("good")
    hostile = try library("hostile")
    endless = try library("endless")
    threaded = try library("threaded")
    parent = try program("parent")
    withoutLandlock = try program("without-landlock")
    self.folder = folder
    // A static value is never released.
    let path = folder.path
    WorkerPrograms.leftover.withLock { $0 = path }
    atexit {
      if let path = WorkerPrograms.leftover.withLock({ $0 }) {
        try? FileManager.default.removeItem(atPath: path)
      }
    }
  }

  private static let leftover = Mutex<String?>(nil)
}
