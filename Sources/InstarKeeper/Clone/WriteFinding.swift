internal import Glibc
internal import InstarLinux
internal import InstarSchema

/// Why this user cannot write a file or folder.
struct WriteFinding {
  /// Such as "the store is immutable".
  let message: String
  /// What to do about it.
  let fix: String

  /// - Parameters:
  ///   - rights: The mode of `access(2)`.
  ///   - what: The file in words.
  ///   - fixOfRights: The next step if only the rights are missing. Called only then, because it reads the name of a
  ///     user from the system's databases.
  /// - Returns: `nil` where nothing forbids it, also where another run has just removed the file or folder.
  init?(
    _ path: String, _ rights: Int32, _ what: String, fix fixOfRights: @autoclosure () -> String
  ) {
    let reason = access(path, rights) == 0 ? 0 : errno
    let flags = FileFlag.of(path)
    if flags.contains(.immutable) || flags.contains(.appendOnly) {
      let isImmutable = flags.contains(.immutable)
      message = "\(what) is \(isImmutable ? "immutable" : "append-only")"
      fix = "run as root: chattr -\(isImmutable ? "i" : "a") \(CommandText.quoted(path))"
    } else if reason == EROFS {
      message = "the file system of \(what) is read-only"
      fix = "mount it for writing; to find it, run: findmnt --target \(CommandText.quoted(path))"
    } else if reason != 0, reason != ENOENT {
      message = "user \(ProcessIdentity.label(of: geteuid())) cannot write \(what)"
      fix = fixOfRights()
    } else {
      return nil
    }
  }
}
