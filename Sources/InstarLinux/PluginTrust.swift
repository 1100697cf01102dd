import Glibc
public import InstarSchema

/// Checks that nobody but root could have placed a plugin: a daemon loads no other.
///
/// A plugin is code that changes stores. It is loaded only if the file, every folder above it and every symbolic link
/// on its path belong to root and nobody else can write them; folders above it may be sticky. A daemon that an ordinary
/// user runs also trusts that user's files.
public struct PluginTrust: Sendable {
  private let owners: Set<UInt32>

  /// - Parameter owners: The users whose plugins are loaded.
  public init(owners: Set<UInt32>) {
    self.owners = owners
  }

  /// The trust of a daemon with this process's rights.
  public static var ofThisDaemon: PluginTrust {
    PluginTrust(owners: ProcessIdentity.mayBeAnyUser ? [0] : [0, geteuid()])
  }

  /// Checks the plugin and its path.
  ///
  /// - Throws: `untrustedPlugin` with the path at fault and the command that corrects it; `missingPlugin`.
  public func require(_ plugin: String) throws(InstarError) {
    let what = "cannot trust plugin '\(plugin)'"
    let trust = PathTrust(owners: owners, acceptsStickyFolder: true, followsLinkAtEnd: true)
    do throws(PathTrust.Fault) {
      let target = try trust.target(of: plugin)
      guard target.status.st_mode & S_IFMT == S_IFREG else {
        throw .unsafe(cause: "'\(target.path)' is not a regular file", remedy: nil)
      }
      guard owners.contains(target.status.st_uid) else {
        throw .foreign(path: target.path, owner: target.status.st_uid)
      }
      try trust.requireUnwritable(target.path, target.status)
    } catch {
      switch error {
      case .unsafe(let cause, let remedy):
        throw InstarError(
          .untrustedPlugin, what, cause: cause,
          next: remedy.map { "check that it is the right plugin, then run: \($0)" }
            ?? "install the plugin as root in a folder that only root can write")
      case .shared(let folder):
        throw InstarError(
          .untrustedPlugin, what, cause: "everybody can write '\(folder)'",
          next: "install the plugin as root in a folder that only root can write")
      case .foreign(let path, let owner):
        throw InstarError(
          .untrustedPlugin, what,
          cause: "'\(path)' belongs to user \(ProcessIdentity.label(of: owner)), not to root",
          next: "check that it is the right plugin, then run: chown -h root:root "
            + CommandText.quoted(path))
      case .unavailable(let path, let number):
        throw .systemFailure(
          what, number, code: number == ENOENT ? .missingPlugin : .untrustedPlugin,
          next: "run: ls -ld \(CommandText.quoted(path))")
      }
    }
  }
}
