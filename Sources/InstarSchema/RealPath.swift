import Glibc

/// The path of an existing file or folder without symbolic links, `.` and `..`, as realpath(3) returns it.
package enum RealPath {
  /// Returns the path, if it is UTF-8. Swift puts marks in place of all other bytes, so that the path would name
  /// another file.
  ///
  /// - Returns: `nil` with `errno` set: `EILSEQ` for a path that is not UTF-8.
  package static func of(_ path: String) -> String? {
    guard let real = realpath(path, nil) else { return nil }
    let text = String(validatingCString: real)
    free(real)
    if text == nil { errno = EILSEQ }
    return text
  }
}
