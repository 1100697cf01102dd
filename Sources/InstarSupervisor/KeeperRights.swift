import InstarLinux

/// The user whose rights a keeper has.
public enum KeeperRights: Sendable, Hashable {
  /// This process's rights: the caller named each store and plugin.
  case caller
  /// The rights of the store's owner, without capabilities: for a daemon, which nobody told about each store and
  /// plugin. It uses only files that nobody else could have placed; see `StoreTrust` and `PluginTrust`. A process that
  /// may not become another user serves its own user's stores only.
  case storeOwner
  /// For root, who named each store and plugin: the rights of the store's owner if that user can create files beside
  /// the store, else this process's. So a store is not opened with more rights than needed, and its backup belongs to
  /// its owner.
  case administrator

  /// The rights for a command-line program, whose user names stores and plugins.
  public static var ofCommandLine: KeeperRights {
    ProcessIdentity.ownUser == 0 ? .administrator : .caller
  }
}
