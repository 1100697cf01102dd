import CInstar
import Glibc
import InstarSchema

/// Checks who can replace the file that a path names: the owners of the file, of every folder and of every symbolic
/// link on the path from `/`.
///
/// A path is trusted if each of these belongs to one of `owners` and nobody else can write it. Then nobody else can
/// replace the file between this check and its use. The check uses `lstat` and `readlink` only: it opens nothing.
///
/// - A folder that others can write is accepted if it is sticky, as `/tmp` is: only the owner of an entry can rename or
///   remove it there. An access control list shows in the bits of the group, and is refused with them.
/// - A symbolic link is followed if it belongs to one of the owners; its target is checked in the same way.
struct PathTrust {
  /// The users who may be able to replace the file.
  var owners: Set<UInt32>
  /// Whether the folder of the file may be sticky. Folders further up always may.
  var acceptsStickyFolder: Bool
  /// Whether the file itself may be a symbolic link.
  var followsLinkAtEnd: Bool

  /// The file that a path names.
  struct Target {
    /// The path without symbolic links.
    var path: String
    var status: stat
  }

  /// The reason why a path is not trusted.
  enum Fault: Error {
    /// Others can replace the file; `remedy` is the command that prevents it, if there is one.
    case unsafe(cause: String, remedy: String?)
    /// The file is in a sticky folder that everybody is meant to write, such as `/tmp`. Its mode must stay.
    case shared(folder: String)
    /// This part of the path belongs to a user who is not one of the owners.
    case foreign(path: String, owner: UInt32)
    /// This part of the path is missing or cannot be read, with its `errno`.
    case unavailable(path: String, Int32)
  }

  /// The most symbolic links on one path, as in the kernel (path_resolution(7)).
  private static let linkLimit = 40

  /// Resolves a path, checking every part of it.
  ///
  /// - Parameter path: Absolute.
  func target(of path: String) throws(Fault) -> Target {
    var rest = path.split(separator: "/").map(String.init)[...]
    var links = 0
    var current = ""
    var status = try self.status(of: "/")
    try requireOwn(folder: "/", status, isLast: rest.count <= 1)
    while let name = rest.popFirst() {
      if name == "." { continue }
      if name == ".." {
        let parent = current.isEmpty ? "/" : current.parentFolder
        current = parent == "/" ? "" : parent
        status = try self.status(of: parent)
        continue
      }
      let next = current + "/" + name
      status = try self.status(of: next)
      switch status.st_mode & S_IFMT {
      case S_IFLNK:
        guard !rest.isEmpty || followsLinkAtEnd else {
          throw Self.linkAtEnd
        }
        guard owners.contains(status.st_uid) else {
          throw .foreign(path: next, owner: status.st_uid)
        }
        links += 1
        guard links <= Self.linkLimit else { throw .unavailable(path: next, ELOOP) }
        let destination = try readLink(next)
        if destination.hasPrefix("/") { current = "" }
        rest = destination.split(separator: "/").map(String.init)[...] + rest
      case S_IFDIR:
        current = next
        if !rest.isEmpty { try requireOwn(folder: next, status, isLast: rest.count == 1) }
      default:
        guard rest.isEmpty else { throw .unavailable(path: next, ENOTDIR) }
        current = next
      }
    }
    return Target(path: current.isEmpty ? "/" : current, status: status)
  }

  /// Resolves the path of a file as `target(of:)` does, but checks a folder that is known no more.
  ///
  /// - Parameter known: `nil` checks all.
  func target(of path: String, known: TrustedFolders?) throws(Fault) -> Target {
    let (folder, name) = (path.parentFolder, path.lastName)
    guard let known, !followsLinkAtEnd, !["", ".", ".."].contains(name), !path.hasSuffix("/")
    else {
      return try target(of: path)
    }
    let resolved = try known.path(of: folder, ownedBy: owners) { () throws(Fault) in
      // With a name behind it, so that the folder is checked as that of a file.
      try target(of: folder + "/.").path
    }
    let file = resolved == "/" ? "/\(name)" : "\(resolved)/\(name)"
    let status = try self.status(of: file)
    guard !status.isLink else { throw Self.linkAtEnd }
    return Target(path: file, status: status)
  }

  private static var linkAtEnd: Fault {
    .unsafe(cause: "the store is a symbolic link", remedy: nil)
  }

  /// - Parameter isLast: Whether the folder holds the file.
  private func requireOwn(folder: String, _ status: stat, isLast: Bool) throws(Fault) {
    guard owners.contains(status.st_uid) else {
      throw .foreign(path: folder, owner: status.st_uid)
    }
    if status.st_mode & S_ISVTX != 0 {
      if acceptsStickyFolder || !isLast { return }
      if status.st_mode & S_IWOTH != 0 { throw .shared(folder: folder) }
    }
    try requireUnwritable(folder, status)
  }

  /// - Throws: `unsafe` if others than its owner can write it.
  func requireUnwritable(_ path: String, _ status: stat) throws(Fault) {
    if status.st_mode & S_IWOTH != 0 {
      throw .unsafe(
        cause: "everybody can write '\(path)'", remedy: "chmod go-w \(CommandText.quoted(path))")
    }
    if status.st_mode & S_IWGRP != 0 {
      // With an access control list these bits are its mask: the most that a listed user or group may do.
      if FileFlag.of(path).contains(.accessList) {
        throw .unsafe(
          cause: "the access control list of '\(path)' lets others write it",
          remedy: "setfacl -b \(CommandText.quoted(path))")
      }
      throw .unsafe(
        cause: "group \(ProcessIdentity.label(ofGroup: status.st_gid)) can write '\(path)'",
        remedy: "chmod g-w \(CommandText.quoted(path))")
    }
  }

  private func status(of path: String) throws(Fault) -> stat {
    guard let status = stat(of: path) else { throw .unavailable(path: path, errno) }
    return status
  }

  private func readLink(_ path: String) throws(Fault) -> String {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink(path, &buffer, buffer.count)
    guard count > 0 else { throw .unavailable(path: path, errno) }
    return String(decoding: buffer.prefix(count).map(UInt8.init(bitPattern:)), as: UTF8.self)
  }
}
