import Glibc
public import InstarSchema

/// Checks that nobody but root could have placed a hook: it acts with the rights of another user.
///
/// The rule is that of plugins (`PluginTrust`), and the file must be executable.
public struct HookTrust: Sendable {
  private let owners: Set<UInt32>

  /// - Parameter owners: The users whose hooks run.
  public init(owners: Set<UInt32>) {
    self.owners = owners
  }

  /// The trust of a daemon with this process's rights.
  public static var ofThisDaemon: HookTrust { HookTrust(owners: PathTrust.ownersForThisDaemon) }

  /// Checks the hook and its path.
  ///
  /// - Returns: The path without symbolic links.
  /// - Throws: `untrustedHook` with the path at fault and the command that corrects it; `hookFailed` where the hook is
  ///   missing, or cannot be executed.
  @discardableResult
  public func require(_ hook: String) throws(InstarError) -> String {
    let trust = PathTrust(owners: owners, acceptsStickyFolder: true, followsLinkAtEnd: true)
    let target = try trust.require(
      hook, PathTrust.File(noun: "hook", untrusted: .untrustedHook, missing: .hookFailed))
    guard target.status.st_mode & 0o111 != 0 else {
      throw InstarError(
        .hookFailed, "cannot run hook '\(hook)'", cause: "the file is not executable",
        next: "run: chmod 755 \(CommandText.quoted(target.path))")
    }
    return target.path
  }
}
