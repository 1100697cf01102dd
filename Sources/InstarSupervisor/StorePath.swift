import Glibc
package import InstarLinux
import InstarSchema
import Synchronization

/// The path of a store as the ledger and the other files of the state folder have it: absolute, its folder without
/// symbolic links, `.` and `..`.
///
/// The store itself is not resolved: a store that is a symbolic link is refused. Where the folder is missing or cannot
/// be entered, `.` and `..` are removed from the text alone.
public struct StorePath: Sendable, Hashable {
  public let text: String

  /// - Parameter path: Absolute; another path stays as it is.
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

  /// Returns the paths of many stores, and resolves each folder once. A path without an answer of its file system stays
  /// as it is.
  package static func all(_ paths: [String], by reader: FileReader) -> [StorePath] {
    var resolved: [StorePath] = []
    while true {
      // Not one for all questions: the thread of one without an answer keeps its lock.
      let folders = Mutex<[String: String]>([:])
      resolved += reader.answers(about: Array(paths.dropFirst(resolved.count))) { path in
        folders.withLock { StorePath(path, folders: &$0) }
      }
      let rest = paths.dropFirst(resolved.count)
      guard let silent = rest.first else { return resolved }
      let isSilent = reader.silence()
      resolved += ([silent] + rest.dropFirst().prefix(while: isSilent)).map(
        StorePath.init(inLedger:))
    }
  }

  /// - Parameter text: A path as the ledger has it, or is to have it. It is not resolved again.
  init(inLedger text: String) { self.text = text }

  /// Returns the path of a folder in the same spelling.
  package static func folder(_ path: String) -> String {
    if let real = RealPath.of(path) { return real }
    // Without its symbolic links, `..` would name another folder. Whoever opens a store in the folder refuses it.
    if errno == EILSEQ { return path }
    var parts: [Substring] = []
    for part in path.split(separator: "/") where part != "." {
      if part == ".." { _ = parts.popLast() } else { parts.append(part) }
    }
    return "/" + parts.joined(separator: "/")
  }
}
