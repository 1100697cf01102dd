import CInstar
import Glibc
import InstarSchema

/// Who can change what a path leads to: the file itself, every folder and every symbolic link on
/// the way from `/`.
///
/// A path is in the hands of its owners when each of these belongs to one of them and nobody else
/// can write it. Then nobody else can exchange the file, neither now nor between this look and the
/// use of the file. Only names and `lstat` are used: nothing is opened.
///
/// - A folder that others can write too is accepted where it is sticky, as `/tmp` is, and
///   `acceptsStickyFolders`: in such a folder only its owner can rename or remove an entry. What an
///   access control list allows shows in the bits of the group, and is refused with them.
/// - A symbolic link is followed where it belongs to one of the owners, and the way that it leads is
///   looked at in the same manner.
struct PathTrust {
  /// Whose hands are safe.
  var owners: Set<UInt32>
  /// Whether the folder that holds the file may be one that others can make files in. On the way
  /// to it such a folder does no harm.
  var acceptsStickyFolder: Bool
  /// Whether the file itself may be a symbolic link.
  var followsLinkAtEnd: Bool

  /// Where a path leads.
  struct Target {
    /// Without a symbolic link in it.
    var path: String
    var status: stat
  }

  /// What is wrong with a path.
  enum Fault: Error {
    /// Others can change what the path leads to; the command mends it, where there is one.
    case unsafe(cause: String, remedy: String?)
    /// This part of the path belongs to somebody who is none of the owners.
    case foreign(path: String, owner: UInt32)
    /// There is no such thing, or it cannot be looked at: `errno` of the part at fault.
    case unavailable(path: String, Int32)
  }

  /// The most symbolic links on one way, as in the kernel (path_resolution(7)).
  private static let linkLimit = 40

  /// Goes the way to a file.
  ///
  /// - Parameter path: Absolute.
  func target(of path: String) throws(Fault) -> Target {
    var rest = path.split(separator: "/").map(String.init)[...]
    var links = 0
    var current = ""
    var status = try look(at: "/")
    try requireOwn(folder: "/", status, isLast: rest.count <= 1)
    while let name = rest.popFirst() {
      if name == "." { continue }
      if name == ".." {
        current = String(current[..<(current.lastIndex(of: "/") ?? current.startIndex)])
        status = try look(at: current.isEmpty ? "/" : current)
        continue
      }
      let next = current + "/" + name
      status = try look(at: next)
      switch status.st_mode & S_IFMT {
      case S_IFLNK:
        guard !rest.isEmpty || followsLinkAtEnd else {
          throw .unsafe(cause: "it is a symbolic link", remedy: nil)
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

  /// - Parameter isLast: The folder holds the file, as far as the way is known.
  private func requireOwn(folder: String, _ status: stat, isLast: Bool) throws(Fault) {
    guard owners.contains(status.st_uid) else {
      throw .foreign(path: folder, owner: status.st_uid)
    }
    let isSticky = status.st_mode & S_ISVTX != 0 && (acceptsStickyFolder || !isLast)
    if !isSticky { try requireUnwritable(folder, status) }
  }

  /// - Throws: `unsafe` where others than its owner can write it.
  func requireUnwritable(_ path: String, _ status: stat) throws(Fault) {
    if status.st_mode & S_IWOTH != 0 {
      throw .unsafe(
        cause: "everybody can write '\(path)'", remedy: "chmod go-w \(Self.quoted(path))")
    }
    if status.st_mode & S_IWGRP != 0 {
      throw .unsafe(
        cause: "group \(ProcessIdentity.label(ofGroup: status.st_gid)) can write '\(path)'",
        remedy: "chmod g-w \(Self.quoted(path))")
    }
  }

  private func look(at path: String) throws(Fault) -> stat {
    var status = stat()
    guard lstat(path, &status) == 0 else { throw .unavailable(path: path, errno) }
    return status
  }

  private func readLink(_ path: String) throws(Fault) -> String {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink(path, &buffer, buffer.count)
    guard count > 0 else { throw .unavailable(path: path, errno) }
    return String(decoding: buffer.prefix(count).map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  /// The path as a shell takes it.
  static func quoted(_ path: String) -> String {
    "'" + path.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''")
      + "'"
  }
}
