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
    PluginTrust(owners: PathTrust.ownersForThisDaemon)
  }

  /// Checks the plugin and its path.
  ///
  /// - Throws: `untrustedPlugin` with the path at fault and the command that corrects it; `missingPlugin`.
  public func require(_ plugin: String) throws(InstarError) {
    let trust = PathTrust(owners: owners, acceptsStickyFolder: true, followsLinkAtEnd: true)
    try trust.require(
      plugin, PathTrust.File(noun: "plugin", untrusted: .untrustedPlugin, missing: .missingPlugin))
  }
}
