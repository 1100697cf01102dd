import Foundation
import Glibc

/// The hidden file beside a plugin that an optimized build writes, and the folder of expanded sources beside it:
/// `.Notes.so.building-4711` and `.Notes.so.building-4711.expanded`.
enum UnfinishedPlugin {
  /// The file of this process.
  static func path(of plugin: String) -> String {
    let (folder, prefix) = place(of: plugin)
    return "\(folder)/\(prefix)\(getpid())"
  }

  /// Where the expanded sources of the file of `path(of:)` are.
  static func expandedSources(of unfinished: String) -> String { unfinished + expansionSuffix }

  private static let expansionSuffix = ".expanded"

  private static func place(of plugin: String) -> (folder: String, prefix: String) {
    let url = URL(fileURLWithPath: plugin)
    return (url.deletingLastPathComponent().path, ".\(url.lastPathComponent).building-")
  }

  /// Removes what builds of the plugin left whose process was killed.
  ///
  /// What cannot be listed or removed stays, as no build depends on it. So does the file of a process whose id another
  /// process has now.
  static func removeAbandoned(of plugin: String) {
    let (folder, prefix) = place(of: plugin)
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    for name in names where name.hasPrefix(prefix) {
      var id = name.dropFirst(prefix.count)
      if id.hasSuffix(expansionSuffix) { id = id.dropLast(expansionSuffix.count) }
      guard let process = pid_t(id), process > 0, kill(process, 0) != 0, errno == ESRCH else {
        continue
      }
      try? FileManager.default.removeItem(atPath: "\(folder)/\(name)")
    }
  }
}
