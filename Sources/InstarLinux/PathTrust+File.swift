import Glibc
import InstarSchema

extension PathTrust {
  /// A file that only root may be able to place, such as a plugin or a hook, and the words and codes of its errors.
  struct File {
    /// "plugin".
    var noun: String
    var untrusted: InstarError.Code
    var missing: InstarError.Code
  }

  /// Checks a file and its path: a regular file that nobody but its owner, one of `owners`, could have placed.
  ///
  /// - Returns: The file, by its path without symbolic links.
  /// - Throws: The file's own codes, with the path at fault and the command that corrects it.
  @discardableResult
  func require(_ path: String, _ file: File) throws(InstarError) -> Target {
    let what = "cannot trust \(file.noun) '\(path)'"
    do throws(PathTrust.Fault) {
      let target = try target(of: path)
      guard target.status.isRegular else {
        throw .unsafe(cause: "'\(target.path)' is not a regular file", remedy: nil)
      }
      guard owners.contains(target.status.st_uid) else {
        throw .foreign(path: target.path, owner: target.status.st_uid)
      }
      try requireUnwritable(target.path, target.status)
      return target
    } catch {
      let installation = "install the \(file.noun) as root in a folder that only root can write"
      switch error {
      case .unsafe(let cause, let remedy):
        throw InstarError(
          file.untrusted, what, cause: cause,
          next: remedy.map { "check that it is the right \(file.noun), then run: \($0)" }
            ?? installation)
      case .shared(let folder):
        throw InstarError(
          file.untrusted, what, cause: "everybody can write '\(folder)'", next: installation)
      case .foreign(let path, let owner):
        throw InstarError(
          file.untrusted, what,
          cause: "'\(path)' belongs to user \(ProcessIdentity.label(of: owner)), not to root",
          next: "check that it is the right \(file.noun), then run: chown -h root:root "
            + CommandText.quoted(path))
      case .unavailable(let path, let number):
        throw .systemFailure(
          what, number, code: number == ENOENT ? file.missing : file.untrusted,
          next: "run: ls -ld \(CommandText.quoted(path))")
      }
    }
  }

  /// The owners whose files a daemon with this process's rights trusts: root, and an ordinary user's own.
  static var ownersForThisDaemon: Set<UInt32> {
    ProcessIdentity.mayBeAnyUser ? [0] : [0, geteuid()]
  }
}
