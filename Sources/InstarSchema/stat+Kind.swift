package import Glibc

extension stat {
  /// The status of the file that a path names; a symbolic link is a file of its own. `nil` with `errno` set where there
  /// is none.
  package init?(of path: String) {
    self.init()
    guard lstat(path, &self) == 0 else { return nil }
  }

  /// The status of the file that a path ends at, through symbolic links. `nil` with `errno` set where there is none.
  package init?(following path: String) {
    self.init()
    guard stat(path, &self) == 0 else { return nil }
  }

  /// What a file is that SQLite cannot use; `nil` for a regular file.
  package var irregularKind: String? {
    switch st_mode & S_IFMT {
    case S_IFREG: nil
    case S_IFLNK: "a symbolic link"
    case S_IFDIR: "a folder"
    case S_IFIFO: "a FIFO"
    case S_IFSOCK: "a socket"
    default: "a device"
    }
  }

  package var isRegular: Bool { st_mode & S_IFMT == S_IFREG }
  package var isFolder: Bool { st_mode & S_IFMT == S_IFDIR }
  package var isLink: Bool { st_mode & S_IFMT == S_IFLNK }
  package var isSocket: Bool { st_mode & S_IFMT == S_IFSOCK }
}
