import Glibc
public import InstarSchema

/// Which plugins a daemon loads: those that nobody but root could have put there.
///
/// A plugin is code that decides what a store becomes. It is loaded only where it, every folder
/// above it and every symbolic link on the way belong to root and nobody else can write them;
/// folders above it may be sticky. A daemon that an ordinary user runs, which can do no more than
/// that user, also trusts what belongs to him.
public struct PluginTrust: Sendable {
  private let owners: Set<UInt32>

  /// - Parameter owners: Whose plugins are loaded.
  public init(owners: Set<UInt32>) {
    self.owners = owners
  }

  /// What a daemon with this process's rights trusts.
  public static var ofThisDaemon: PluginTrust {
    PluginTrust(owners: ProcessIdentity.mayBeAnyUser ? [0] : [0, geteuid()])
  }

  /// - Throws: `untrustedPlugin` with the path at fault and the command that mends it;
  ///   `missingPlugin` where there is none.
  public func require(_ plugin: String) throws(InstarError) {
    let what = "cannot trust plugin '\(plugin)'"
    let trust = PathTrust(owners: owners, acceptsStickyFolder: true, followsLinkAtEnd: true)
    do throws(PathTrust.Fault) {
      let target = try trust.target(of: plugin)
      guard target.status.st_mode & S_IFMT == S_IFREG else {
        throw .unsafe(cause: "'\(target.path)' is no regular file", remedy: nil)
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
          next: remedy.map { "make sure that it is the right plugin, then: \($0)" }
            ?? "install the plugin as root, in a folder that only root can write")
      case .foreign(let path, let owner):
        throw InstarError(
          .untrustedPlugin, what,
          cause: "'\(path)' belongs to user \(ProcessIdentity.label(of: owner))",
          next: "make sure that it is the right plugin, then: chown -h root:root "
            + PathTrust.quoted(path))
      case .unavailable(let path, let number):
        throw .systemFailure(
          what, number, code: number == ENOENT ? .missingPlugin : .untrustedPlugin,
          next: "look at '\(path)'")
      }
    }
  }
}
