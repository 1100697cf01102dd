import Foundation
import InstarLinux
import InstarSchema

/// Lists the plugin files of a folder: names that end in `.so` and are not hidden.
enum PluginFolder {
  /// Whether a file of that name is listed: it ends in `.so` and is not hidden.
  static func isPlugin(_ name: String) -> Bool {
    name.hasSuffix(".so") && !name.hasPrefix(".")
  }

  /// - Returns: every plugin file of the folder by its path; none where the folder does not exist, which is usual: it
  ///   is made by the first package that brings a plugin.
  /// - Throws: `watchFailed` when the folder is there and cannot be read.
  static func list(_ folder: String) throws(InstarError) -> [String: WatchedVersion] {
    let names: [String]
    do throws(InstarError) {
      names = try FolderNames.all(in: folder, suffix: ".so")
    } catch {
      var status = stat()
      guard lstat(folder, &status) == 0 else { return [:] }
      throw InstarError(
        .watchFailed, "cannot read the plugin folder '\(folder)'",
        cause: error.cause, state: "its plugins are not used",
        next: advice(on: folder))
    }
    var files: [String: WatchedVersion] = [:]
    for name in names where isPlugin(name) {
      let path = (folder as NSString).appendingPathComponent(name)
      files[path] = version(of: path)
    }
    return files
  }

  /// What to do about a folder that cannot be watched or read.
  static func advice(on folder: String) -> String {
    var status = stat()
    let isThere = stat(folder, &status) == 0
    guard isThere || ![ENOENT, ENOTDIR].contains(errno) else {
      return "create the folder, or correct its path; instard looks for it at each rescan"
    }
    guard !isThere || status.isFolder else {
      return "name a folder instead, in 'plugins' of the configuration or with --plugin-dir"
    }
    return "let user \(ProcessIdentity.label(of: geteuid())) read the folder"
  }

  /// Whether the file was written less than `age` ago. While a plugin is still being copied, it looks broken.
  static func isFresh(_ version: WatchedVersion, age: Duration) -> Bool {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    let passed = now.nanoseconds - version.modifiedNanoseconds
    // A time in the future gives no age.
    return passed >= 0 && Duration.nanoseconds(passed) < age
  }

  /// The version of the file at the end of the path: a plugin may be a symbolic link to the file that a package
  /// installed. `nil` where that is not a regular file.
  static func version(of path: String) -> WatchedVersion? {
    guard let status = stat(following: path), status.isRegular else { return nil }
    return WatchedVersion(FileVersion(status), owner: status.st_uid, mode: status.st_mode)
  }
}
