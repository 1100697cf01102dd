import CInstar
import Glibc
public import InstarSchema

/// A file in a folder that was opened once.
///
/// Where root works in the folder of another user, that user may replace the folder by a symbolic link at any time, and
/// root would then change files elsewhere. So the folder must belong to that user, and root reaches the file by the
/// open folder only: there the user could do the same.
public struct OwnedFile: ~Copyable {
  /// For `openat` and its like.
  public let folder: Int32
  public let name: String

  /// - Parameter owner: To whom the folder must belong; `nil` where this user works in its own folder.
  /// - Throws: `stateFolderFailed` where the folder belongs to another user.
  public init(of path: String, owner: DurableFile.Owner?) throws(InstarError) {
    guard let owner else {
      folder = AT_FDCWD
      name = path
      return
    }
    let parent = path.parentFolder
    let descriptor = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw .systemFailure(
        "cannot use the folder '\(parent)'", errno, code: .stateFolderFailed,
        next: "run: ls -ld \(CommandText.quoted(parent))")
    }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else {
      let reason = errno
      close(descriptor)
      throw .systemFailure(
        "cannot use the folder '\(parent)'", reason, code: .stateFolderFailed,
        next: "run: ls -ld \(CommandText.quoted(parent))")
    }
    guard status.st_uid == owner.uid else {
      close(descriptor)
      throw InstarError(
        .stateFolderFailed, "cannot use the folder '\(parent)'",
        cause: "the folder belongs to user \(ProcessIdentity.label(of: status.st_uid)), "
          + "not to \(ProcessIdentity.label(of: owner.uid))",
        next: "run: ls -ld \(CommandText.quoted(parent))")
    }
    folder = descriptor
    name = path.lastName
  }

  /// Another name in the folder, for `renameat`.
  public func beside(_ other: String) -> String {
    folder == AT_FDCWD ? name.sibling(other) : other
  }

  /// Gives the file another name in its folder. That is not on disk when this returns.
  ///
  /// - Returns: `false` where that is not possible: the file is missing, another one has the name, or the file system
  ///   does not support `RENAME_NOREPLACE`.
  public func rename(to other: String) -> Bool {
    instar_rename_no_replace(folder, name, folder, beside(other)) == 0
  }

  deinit { if folder >= 0 { close(folder) } }
}
