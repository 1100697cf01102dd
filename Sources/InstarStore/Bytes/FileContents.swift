internal import CDatabase
internal import Glibc
package import InstarSchema

/// Copies the contents of whole files.
package enum FileContents {
  /// Copies a file to a new one, which only its owner can read and write. The blocks are shared where the file system
  /// can do that, and copied by the kernel elsewhere. Nothing is brought to disk.
  ///
  /// - Throws: `noSpace` or `unreadableStore`; the new file is then incomplete. Follows no symbolic link.
  package static func copy(_ source: String, toNew target: String) throws(InstarError) {
    let input = open(source, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
    guard input >= 0 else { throw failure("cannot read '\(source)'", errno) }
    defer { close(input) }
    let output = open(target, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard output >= 0 else { throw failure("cannot create '\(target)'", errno) }
    defer { close(output) }
    guard instar_copy_contents(output, input) == 0 else {
      throw failure("cannot write '\(target)'", errno)
    }
  }

  private static func failure(_ what: String, _ code: Int32) -> InstarError {
    InstarError(
      InstarError.isFull(code) ? .noSpace : .unreadableStore, what,
      cause: String(cString: strerror(code)))
  }
}
