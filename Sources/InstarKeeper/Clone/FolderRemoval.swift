internal import Foundation

/// Removes a folder that a worker could write, whatever the worker left in it.
///
/// No symbolic link is followed, and unreadable subfolders are removed too. Folders may be nested deeper than a path or
/// the stack can reach, so they are first moved up into the folder that is removed. The worker is dead by then, and
/// nobody else writes there.
enum FolderRemoval {
  /// Removes as much as possible. Errors are ignored; the report of a run names the files that stay.
  static func remove(_ path: String) {
    let top = open(AT_FDCWD, Array(path.utf8CString))
    guard top >= 0 else { return }
    defer { close(top) }
    var pending = names(in: top)
    var moved = 0
    while let name = pending.popLast() {
      if unlinkat(top, name, 0) == 0 { continue }
      let folder = open(top, name)
      if folder >= 0 {
        for child in names(in: folder) where unlinkat(folder, child, 0) != 0 {
          // An empty folder needs no move.
          if unlinkat(folder, child, AT_REMOVEDIR) == 0 { continue }
          if let newName = moveUp(child, from: folder, to: top, &moved) { pending.append(newName) }
        }
        close(folder)
      }
      unlinkat(top, name, AT_REMOVEDIR)
    }
    rmdir(path)
  }

  /// Moves a folder into `top`, under an unused name.
  private static func moveUp(
    _ name: [CChar], from folder: Int32, to top: Int32, _ moved: inout Int
  ) -> [CChar]? {
    // Moving a folder writes to it: its entry `..` changes.
    let opened = open(folder, name)
    guard opened >= 0 else { return nil }
    close(opened)
    while true {
      moved += 1
      let newName = Array("moved-\(moved)".utf8CString)
      if renameat(folder, name, top, newName) == 0 { return newName }
      guard [EEXIST, ENOTEMPTY, ENOTDIR].contains(errno) else { return nil }
    }
  }

  /// `O_PATH`, which Swift does not import (asm-generic/fcntl.h).
  private static let pathOnly: Int32 = 0o10000000

  /// Opens a folder for reading, after making it readable and writable for its owner.
  ///
  /// - Returns: A descriptor, or -1 where there is no folder of that name. A symbolic link is not a folder.
  private static func open(_ parent: Int32, _ name: [CChar]) -> Int32 {
    // A descriptor of the path alone needs no right to read the folder.
    let place = openat(parent, name, pathOnly | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard place >= 0 else { return -1 }
    defer { close(place) }
    var status = stat()
    guard fstat(place, &status) == 0 else { return -1 }
    if status.st_mode & 0o700 != 0o700 { chmod("/proc/self/fd/\(place)", 0o700) }
    return openat(place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
  }

  /// The names in a folder, as bytes: those that a worker chose need not be text.
  private static func names(in folder: Int32) -> [[CChar]] {
    let copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard copy >= 0 else { return [] }
    guard let stream = fdopendir(copy) else {
      close(copy)
      return []
    }
    defer { closedir(stream) }
    var names: [[CChar]] = []
    while let entry = readdir(stream) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { field in
        field.withMemoryRebound(to: CChar.self, capacity: 256) { bytes in
          Array(UnsafeBufferPointer(start: bytes, count: strlen(bytes) + 1))
        }
      }
      if !([[46, 0], [46, 46, 0]] as [[CChar]]).contains(name) { names.append(name) }
    }
    return names
  }
}
