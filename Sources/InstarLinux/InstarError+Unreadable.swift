import Glibc
package import InstarSchema

extension InstarError {
  /// The error for a file that exists, or may exist, and that this user cannot read.
  ///
  /// - Parameter code: The error number of the call that failed.
  package static func unreadable(
    _ path: String, _ what: String, store: String, code: Int32
  ) -> InstarError {
    let folder = path.split(separator: "/").dropLast().map { "/\($0)" }.joined()
    var status = stat()
    // Where even the file's mode cannot be read, the folder is closed.
    let command =
      lstat(path, &status) == 0
      ? "chmod u+r \(CommandText.quoted(path))" : "chmod u+rwx \(CommandText.quoted(folder))"
    return InstarError(
      .unreadableStore, what, store: store, cause: "'\(path)': \(String(cString: strerror(code)))",
      next: code == EACCES
        ? "run as the owner of the store: \(command); then \(CommandText.repetition)"
        : "find out what is wrong with the folder; run: ls -la \(CommandText.quoted(folder))")
  }
}
