import InstarLinux
import InstarSchema
import Synchronization

/// With whose rights keepers work.
public enum KeeperRights: Sendable, Hashable {
  /// With those of this process. Stores and plugins are the caller's own choice: he has named each.
  case caller
  /// Each store with those of its owner, and without capabilities. Stores are found and plugins are
  /// dropped in, so both are used only where nobody else could have put them there; see `StoreTrust`
  /// and `PluginTrust`. A process that may not become another user serves its own user's stores
  /// only.
  case storeOwner
  /// Root's, who has named each store and plugin. A store that its owner could work on himself is
  /// worked on as if he did, with his rights alone: the store is opened by nobody mightier, and its
  /// backup is his. Elsewhere, as in root's own folders, with those of this process.
  case administrator

  /// Those of a program that its user calls with stores and plugins of his choice.
  public static var ofCommandLine: KeeperRights {
    ProcessIdentity.ownUser == 0 ? .administrator : .caller
  }
}

/// Decides as whom the keeper for a store is started, and whether it may be started at all.
///
/// It looks at names and `lstat` only.
struct KeeperAccess: Sendable {
  let rights: KeeperRights
  private let mayBeAnyUser = ProcessIdentity.mayBeAnyUser
  private let ownUser = ProcessIdentity.ownUser
  private let pluginTrust = PluginTrust.ofThisDaemon

  init(_ rights: KeeperRights) {
    self.rights = rights
  }

  /// As whom plugins are described: they are run, but see no store.
  var identityForPlugins: ProcessIdentity {
    switch rights {
    case .caller, .administrator: .inherited
    case .storeOwner: .unprivileged
    }
  }

  /// - Throws: `untrustedPlugin`, `missingPlugin`.
  func requireTrusted(plugins: [String]) throws(InstarError) {
    guard rights == .storeOwner else { return }
    for plugin in plugins { try pluginTrust.require(plugin) }
  }

  /// As whom a store is worked on.
  ///
  /// - Throws: what `StoreTrust.require` throws; `unreadableStore` where this process may not act
  ///   for the store's owner.
  func identity(forStore store: String) throws(InstarError) -> ProcessIdentity {
    switch rights {
    case .caller: return .inherited
    case .administrator: return try identity(ofNamedStore: store)
    case .storeOwner:
      let owner = try StoreTrust.owner(of: store)
      let identity = try identity(ofOwner: owner, store)
      try StoreTrust(owner: owner).require(store)
      return identity
    }
  }

  /// As whom a run that was cut off is finished or cleared away. The store may be gone, and then
  /// there are only folders to tell whose it was; the keeper looks at the way itself.
  func identity(forRecoveryOf store: String) throws(InstarError) -> ProcessIdentity {
    switch rights {
    case .caller: .inherited
    case .administrator: try identity(ofNamedStore: store)
    case .storeOwner: try identity(ofOwner: try StoreTrust.owner(of: store), store)
    }
  }

  private func identity(ofNamedStore store: String) throws(InstarError) -> ProcessIdentity {
    // What is wrong with a store of which even the owner is not known, the keeper says.
    guard let owner = try? StoreTrust.owner(of: store), owner != ownUser,
      ProcessIdentity.User(uid: owner).mayMakeFiles(beside: store)
    else { return .inherited }
    return try identity(ofOwner: owner, store)
  }

  private func identity(
    ofOwner owner: UInt32, _ store: String
  ) throws(InstarError) -> ProcessIdentity {
    if owner == ownUser { return .unprivileged }
    guard mayBeAnyUser else {
      throw InstarError(
        .unreadableStore, "cannot open '\(store)'", store: store,
        cause: "it belongs to user \(ProcessIdentity.label(of: owner)), and this process, of user "
          + "\(ProcessIdentity.label(of: ownUser)), may not act for others",
        state: "unchanged",
        next: "let instard.service watch it, or run instard as that user")
    }
    return .user(ProcessIdentity.User(uid: owner))
  }
}
