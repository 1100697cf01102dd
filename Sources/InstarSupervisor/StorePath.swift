import Glibc
import InstarSchema

/// The path of a store in the spelling that the state folder keeps: absolute, its folder without links, `.` and `..`.
///
/// The store itself is not resolved: a store that is a symbolic link is refused. Where the folder is missing or cannot
/// be entered, `.` and `..` are removed from the text alone.
public struct StorePath: Sendable, Hashable {
  public let text: String

  /// - Parameter path: Absolute; another path is kept as it is.
  public init(_ path: String) {
    var folders: [String: String] = [:]
    self.init(path, folders: &folders)
  }

  /// - Parameter folders: The folders that were resolved already.
  private init(_ path: String, folders: inout [String: String]) {
    let parts = path.split(separator: "/")
    guard path.hasPrefix("/"), let name = parts.last, name != ".", name != ".." else {
      text = path.hasPrefix("/") ? Self.folder(path) : path
      return
    }
    let given = "/" + parts.dropLast().joined(separator: "/")
    let folder = folders[given] ?? Self.folder(given)
    folders[given] = folder
    text = folder == "/" ? "/\(name)" : "\(folder)/\(name)"
  }

  /// Returns the paths of many stores, and resolves each folder once.
  public static func all(_ paths: [String]) -> [StorePath] {
    var folders: [String: String] = [:]
    return paths.map { StorePath($0, folders: &folders) }
  }

  /// - Parameter text: A path that is already spelled as it is to be kept.
  init(kept text: String) { self.text = text }

  /// Returns the path of a folder in the same spelling.
  package static func folder(_ path: String) -> String {
    if let real = RealPath.of(path) { return real }
    // Without its links, `..` would name another folder. Whoever opens a store in the folder refuses it.
    if errno == EILSEQ { return path }
    var parts: [Substring] = []
    for part in path.split(separator: "/") where part != "." {
      if part == ".." { _ = parts.popLast() } else { parts.append(part) }
    }
    return "/" + parts.joined(separator: "/")
  }
}
