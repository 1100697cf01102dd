import Foundation
import InstarLinux
import InstarTestSupport
import Testing

/// `instard` of the build that the tests belong to, and the folders `srv`, `plugins` and `state` of its configuration.
struct DaemonFixture {
  let folder: TemporaryFolder

  /// - Parameter plugins: The plugins that are installed.
  init(in folder: TemporaryFolder, plugins: [String]) throws {
    self.folder = folder
    for name in ["srv", "plugins"] {
      try FileManager.default.createDirectory(
        atPath: folder.path(name), withIntermediateDirectories: false,
        attributes: [.posixPermissions: 0o755])
    }
    for plugin in plugins {
      let name = URL(filePath: plugin).lastPathComponent
      try FileManager.default.copyItem(atPath: plugin, toPath: folder.path("plugins/\(name)"))
    }
    try Data(
      """
      state: \(folder.path("state"))
      socket: \(socket)
      plugins: [\(folder.path("plugins"))]
      debounce: 50ms
      retry: {first: 200ms, most: 1s}
      watches: [{folder: \(folder.path("srv")), pattern: "*.store"}]
      """.utf8
    ).write(to: URL(filePath: folder.path("instard.yml")))
  }

  var socket: String { folder.path("instard.sock") }

  func start(environment: [String: String] = [:]) throws -> ChildProcess {
    try ChildProcess.start(
      executable: CommandLineTool.productsFolder.appendingPathComponent("instard").path,
      arguments: ["--config", folder.path("instard.yml"), "--foreground"],
      // Those of systemd are about the service that runs the tests.
      environment: ProcessInfo.processInfo.environment
        .filter { !["NOTIFY_SOCKET", "WATCHDOG_USEC"].contains($0.key) }
        .merging(environment) { $1 },
      output: .captured(limitBytes: 1 << 20))
  }

  /// Adds lines to the configuration of the next daemon.
  func configure(_ lines: String) throws {
    let file = folder.path("instard.yml")
    let text = try String(contentsOfFile: file, encoding: .utf8)
    try Data("\(text)\n\(lines)\n".utf8).write(to: URL(filePath: file))
  }

  /// Adds a setting to the watch of the next daemon.
  func configureWatch(_ setting: String) throws {
    try replaceInConfiguration("*.store\"}", with: "*.store\", \(setting)}")
  }

  /// Has the next daemon watch the whole folder, not only `srv`.
  func watchWholeFolder() throws {
    try replaceInConfiguration("folder: \(folder.path("srv"))", with: "folder: \(folder.path)")
  }

  /// Changes the configuration of the next daemon.
  func replaceInConfiguration(_ old: String, with new: String) throws {
    let file = folder.path("instard.yml")
    let text = try String(contentsOfFile: file, encoding: .utf8)
    #expect(text.contains(old))
    try Data(text.replacing(old, with: new).utf8).write(to: URL(filePath: file))
  }

  /// Puts a store of boxes into the watched folder.
  ///
  /// - Parameter file: The name of its file; `nil` for that of the boxes.
  @discardableResult
  func add(_ name: String, as file: String? = nil, boxes: Int = 5) throws -> BoxStore {
    let store = try BoxStore(name, boxes: boxes, in: folder)
    let path = folder.path("srv/\(file ?? name).store")
    try FileManager.default.moveItem(atPath: store.path, toPath: path)
    return BoxStore(path: path)
  }

  /// Waits until the daemon has printed the text so many times, and fails after `soon()`.
  func wait(for text: String, times: Int = 1, in daemon: ChildProcess) async throws {
    let deadline = soon()
    while daemon.capturedOutput.components(separatedBy: text).count <= times {
      try #require(ContinuousClock.now < deadline, "no '\(text)' in: \(daemon.capturedOutput)")
      try await Task.sleep(for: .milliseconds(20))
    }
  }
}
