import Foundation
import InstarLinux

/// A plugin that several tests use, built by `instarctl plugin build` into the build folder.
///
/// It is built once for a build of the SDK: processes that run tests at the same time wait for the one that builds it.
enum SharedPlugin {
  static let folder =
    CommandLineTool.productsFolder.appendingPathComponent("EndToEndTests.plugins")

  /// Fails every test that needs the plugin, not only the first.
  private struct BuildFailure: Error {
    let messages: String
  }

  /// Returns the path of the plugin, which no later call changes.
  ///
  /// - Parameters:
  ///   - sources: What `instarctl plugin build` gets.
  ///   - texts: Further sources, by the names of their files.
  static func build(
    _ name: String, from sources: [String], texts: [String: String] = [:]
  ) async throws -> String {
    let own = folder.appendingPathComponent("\(name).sources")
    try FileManager.default.createDirectory(at: own, withIntermediateDirectories: true)
    let plugin = folder.appendingPathComponent("\(name).so")
    let lock = try await locked(own.path)
    defer { lock.release() }

    var files = sources
    for (file, text) in texts.sorted(by: { $0.key < $1.key }) {
      let path = own.appendingPathComponent(file)
      if (try? String(contentsOf: path, encoding: .utf8)) != text {
        try Data(text.utf8).write(to: path)
      }
      files.append(path.path)
    }
    if try isCurrent(plugin, files) { return plugin.path }
    let answer = try await CommandLineTool.run(["plugin", "build", "-o", plugin.path] + files)
    guard answer.status == 0 else { throw BuildFailure(messages: answer.messages) }
    return plugin.path
  }

  /// Waits without a call that blocks: it would take one of the few threads that tasks run on.
  private static func locked(_ folder: String) async throws -> FolderLock {
    while true {
      if let lock = try FolderLock.tryLock(folder) { return lock }
      try await Task.sleep(for: .milliseconds(50))
    }
  }

  /// Whether the plugin is younger than its sources and than all that builds it.
  private static func isCurrent(_ plugin: URL, _ sources: [String]) throws -> Bool {
    guard FileManager.default.fileExists(atPath: plugin.path) else { return false }
    let built = try changed(plugin)
    let tools = ["instarctl", "libInstar.so", "InstarMacros-tool"].map {
      CommandLineTool.productsFolder.appendingPathComponent($0)
    }
    var files = tools + sources.map { URL(fileURLWithPath: $0) }
    for source in sources {
      // A folder's own time is that of its list of names.
      files += (FileManager.default.subpaths(atPath: source) ?? [])
        .map { URL(fileURLWithPath: source).appendingPathComponent($0) }
    }
    return try files.allSatisfy { try changed($0) < built }
  }

  private static func changed(_ file: URL) throws -> Date {
    let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
    return attributes[.modificationDate] as? Date ?? .distantFuture
  }
}
