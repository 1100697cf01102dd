import Foundation
import Glibc
import InstarLinux
import InstarSchema

/// Notices that sources of a plugin changed.
///
/// Editors save a file in several steps, and inotify reports each. So an event only makes it compare all files with
/// what they were: a change counts once.
struct SourceWatch {
  /// The sources that the user named: files, and folders of them.
  let sources: [String]
  private let watch: FolderWatch
  private var last: [String: FileVersion] = [:]

  /// Remembers the files as they are now.
  ///
  /// - Throws: `watchFailed`.
  init(sources: [String]) throws(InstarError) {
    self.sources = sources.map(FilePath.absolute)
    watch = try FolderWatch()
    for folder in folders { try watch.add(folder) }
    last = files
  }

  /// Waits until a source has changed since the last call, or since the beginning.
  ///
  /// - Returns: `false` if the user interrupted the command.
  /// - Throws: `internalError` if signals cannot be observed.
  mutating func waitForChange() async throws(InstarError) -> Bool {
    let watch = watch
    let interruption = try Interruption { watch.close() }
    // What changed while the last build ran was reported meanwhile, or is found here.
    if changed() != nil, await hasSettled(interruption) { return accept(files) }
    for await event in watch.events {
      watch.taken(event)
      guard await hasSettled(interruption) else { break }
      for folder in folders {
        // A folder that was removed since it was listed is nothing to watch.
        try? watch.add(folder)
      }
      if let now = changed() { return accept(now) }
    }
    return false
  }

  /// Gives an editor the time to write the rest.
  ///
  /// - Returns: `false` if the user interrupted the command.
  private func hasSettled(_ interruption: Interruption) async -> Bool {
    // Only an interruption shortens it.
    try? await Task.sleep(for: .milliseconds(50))
    return !interruption.hasHappened
  }

  private mutating func accept(_ files: [String: FileVersion]) -> Bool {
    last = files
    return true
  }

  private func changed() -> [String: FileVersion]? {
    let now = files
    return now == last ? nil : now
  }

  /// The Swift files with what says that their content changed.
  private var files: [String: FileVersion] {
    var result: [String: FileVersion] = [:]
    for path in namedFiles + sourceFolders.flatMap(entries) where path.hasSuffix(".swift") {
      guard let status = stat(following: path) else { continue }
      result[path] = FileVersion(status)
    }
    return result
  }

  private var namedFiles: [String] { sources.filter { !isFolder($0) } }

  private var folders: [String] {
    namedFiles.map(\.parentFolder) + sourceFolders
  }

  /// The folders that were named, and those in them; not through links, which may go round in circles.
  private var sourceFolders: [String] {
    var result: [String] = []
    var pending = sources.filter(isFolder)
    while let folder = pending.popLast() {
      result.append(folder)
      pending += entries(folder).filter { isFolder($0) && !isLink($0) }
    }
    return result
  }

  /// What is in a folder, without what is hidden; nothing in one that cannot be read.
  private func entries(_ folder: String) -> [String] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    return names.filter { !$0.hasPrefix(".") }.map { "\(folder)/\($0)" }
  }

  private func isLink(_ path: String) -> Bool {
    stat(of: path)?.isLink == true
  }

  private func isFolder(_ path: String) -> Bool {
    var isFolder: ObjCBool = false
    return FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
      && isFolder.boolValue
  }
}
