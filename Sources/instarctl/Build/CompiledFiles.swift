import Foundation
import Glibc
import InstarLinux
import InstarSchema

/// What the compiler made of each source file in the last debug build of a plugin, so that the next one compiles only
/// the files that changed, and those that depend on what changed in them.
///
/// For `Notes.so` they are in the folder `.Notes.so.objects` beside it. swiftc itself keeps track of sources, options
/// and its own version; the file `sdk` in the folder says which SDK and macros the objects are made with.
struct CompiledFiles {
  private let plugin: String
  private let folder: String
  /// Two builds of a plugin at once would write the same objects.
  private let lock: FolderLock

  /// Makes the folder, or removes what another SDK made from it.
  ///
  /// - Parameter plugin: The absolute path of the plugin.
  /// - Throws: `buildFailed` where the folder cannot be written, or another build uses it.
  init(plugin: String, installation: Installation) throws(InstarError) {
    self.plugin = plugin
    folder = plugin.sibling(".\(plugin.lastName).objects")
    do {
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    } catch {
      throw Self.unwritable(folder, plugin: plugin, error)
    }
    guard let lock = try FolderLock.tryLock(folder) else {
      throw InstarError(
        .buildFailed, "cannot build plugin '\(plugin)'",
        cause: "another build of the plugin is running",
        next: "wait until it has ended, then \(CommandText.repetition)")
    }
    self.lock = lock
    do {
      try removeObjectsOfOtherSDK(installation)
    } catch {
      throw unwritable(error)
    }
  }

  /// The plugin until it is installed. Always the same path: swiftc compiles all files again if an option differs.
  var unfinishedPlugin: String { "\(folder)/plugin.so" }

  /// Lets other builds of the plugin use the folder.
  func unlock() { lock.release() }

  private func removeObjectsOfOtherSDK(_ installation: Installation) throws {
    let manager = FileManager.default
    let sdk = try Self.stamp(of: installation)
    let record = folder + "/sdk"
    guard manager.contents(atPath: record) != sdk else { return }
    for name in try manager.contentsOfDirectory(atPath: folder) {
      try manager.removeItem(atPath: "\(folder)/\(name)")
    }
    try sdk.write(to: URL(fileURLWithPath: record))
  }

  private func unwritable(_ error: any Error) -> InstarError {
    Self.unwritable(folder, plugin: plugin, error)
  }

  private static func unwritable(
    _ folder: String, plugin: String, _ error: any Error
  ) -> InstarError {
    InstarError(
      .buildFailed, "cannot build plugin '\(plugin)'",
      cause: "cannot write the folder of its compiled files '\(folder)': \(error)",
      next: "run: ls -ld '\(folder)'")
  }

  /// Where the expanded sources of the next build are. Always the same path, as that of `unfinishedPlugin`.
  var expandedSources: String { "\(folder)/expanded" }

  /// The options with which swiftc compiles some files at a time, and only those that it must.
  ///
  /// Objects made from expanded sources and from the sources as they are have different views of a class, and would
  /// call each other's methods by the wrong offsets. So each kind has its own folder.
  ///
  /// - Parameters:
  ///   - files: The absolute paths of the sources.
  ///   - expanded: What the compiler reads in place of them; `nil` for a build of the sources as they are.
  /// - Throws: `buildFailed` where the folder cannot be written.
  func options(for files: [String], expanded: ExpandedSources?) throws(InstarError) -> [String] {
    let objects = "\(folder)/objects" + (expanded == nil ? "" : "-of-expanded")
    var map = ["": ["swift-dependencies": "\(objects)/build.swiftdeps"]]
    let mapFile = "\(objects)/output-file-map.json"
    do {
      for file in files {
        let object = objects + file
        try FileManager.default.createDirectory(
          atPath: object.parentFolder, withIntermediateDirectories: true)
        try removeObject(object, ifChanged: file, readAs: expanded?.text(of: file))
        map[file] = ["object": "\(object).o", "swift-dependencies": "\(object).swiftdeps"]
      }
      try JSONEncoder().encode(map).write(to: URL(fileURLWithPath: mapFile))
    } catch {
      throw unwritable(error)
    }
    let processors = max(ProcessInfo.processInfo.activeProcessorCount, 1)
    // With a job for each processor, swiftc gives the first half of the files to the first one: the two versions of a
    // plan would be compiled one after the other.
    let jobs = ["-enable-batch-mode", "-driver-batch-count", String(4 * processors)]
    return ["-incremental", "-j\(processors)", "-output-file-map", mapFile] + jobs
  }

  /// Has swiftc compile a source that changed. It compares times by the second, and compiles what has no object.
  ///
  /// - Parameter text: The expanded source, which also changes with the other sources.
  private func removeObject(_ object: String, ifChanged file: String, readAs text: Data?) throws {
    let version = Data((Self.version(of: file) ?? "").utf8) + (text ?? Data())
    let record = object + ".version"
    guard FileManager.default.contents(atPath: record) != version else { return }
    // Before the record: a build that is cut off in between compiles the file again.
    unlink(object + ".o")
    try version.write(to: URL(fileURLWithPath: record))
  }

  /// What says that the content of a file changed: inode, size and time. `nil` for no file.
  private static func version(of path: String) -> String? {
    guard let status = stat(following: path) else { return nil }
    let version = FileVersion(status)
    return "\(version.identity.inode) \(version.sizeBytes) \(version.modifiedNanoseconds)"
  }

  /// The sizes and times of the SDK's files. swiftc does not see that the macros changed.
  private static func stamp(of installation: Installation) throws -> Data {
    let modules = try FileManager.default.contentsOfDirectory(atPath: installation.modulesFolder)
      .sorted().map { installation.modulesFolder + "/" + $0 }
    let lines = [installation.macroExecutable] + modules
    return Data(
      lines.map { path -> String in
        guard let version = stat(of: path).map(FileVersion.init) else { return "" }
        return "\(path) \(version.sizeBytes) \(version.modifiedNanoseconds)\n"
      }.joined().utf8)
  }
}
