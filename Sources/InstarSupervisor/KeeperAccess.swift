import Glibc
import InstarLinux
import InstarSchema
import InstarWire

/// Decides as which user the keeper for a store is started, and whether it may be started at all.
///
/// It reads names and `lstat` only.
struct KeeperAccess: Sendable {
  let rights: KeeperRights
  private let mayBeAnyUser = ProcessIdentity.mayBeAnyUser
  private let ownUser = ProcessIdentity.ownUser
  private let pluginTrust = PluginTrust.ofThisDaemon

  init(_ rights: KeeperRights) {
    self.rights = rights
  }

  /// The user for describing plugins, which run code of the plugin but open no store.
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

  /// The user for a run on a store.
  ///
  /// - Parameter folders: Of the batch that the store is in; `nil` for a single store.
  /// - Throws: What `StoreTrust.require` throws; `unreadableStore` if this process may not act for the store's owner.
  func identity(
    forStore store: String, folders: TrustedFolders? = nil
  ) throws(InstarError) -> ProcessIdentity {
    try identity(for: store) { owner throws(InstarError) in
      try StoreTrust(owner: owner, folders: folders).require(store)
    }
  }

  /// The path under which the ledger has the runs of a store.
  ///
  /// If a user replaced a folder by a symbolic link after the run began, the run does not belong to the store behind
  /// it. It keeps the path that it was given.
  func ledgerPath(of store: String) -> StorePath {
    let path = StorePath(store)
    guard rights != .caller, path.text != store else { return path }
    // A path that cannot be trusted stays as it was given, whatever the reason is.
    return StorePath(inLedger: (try? trustedPath(of: store)) ?? store)
  }

  private func trustedPath(of store: String) throws(InstarError) -> String {
    try StoreTrust(owner: try StoreTrust.owner(of: store)).path(of: store)
  }

  /// Returns the owner of a store; `nil` if another user may have changed its path.
  ///
  /// A store that is gone counts for its folder's owner. In root's folder it may have been anybody's.
  func owner(of store: String) -> UInt32? {
    if rights == .caller { return ownUser }
    var status = stat()
    // Whatever the reason is, the owner is not known.
    guard let owner = try? StoreTrust.owner(of: store),
      (try? StoreTrust(owner: owner).path(of: store)) != nil
    else { return nil }
    return owner == 0 && lstat(store, &status) != 0 ? nil : owner
  }

  /// The user for recovering a run. If the store is gone, its folder's owner, unless a symbolic link of another user is
  /// on the path. The keeper checks the path of a store that exists itself.
  func identity(forRecoveryOf store: String) throws(InstarError) -> ProcessIdentity {
    try identity(for: store) { owner throws(InstarError) in
      _ = try StoreTrust(owner: owner).path(of: store)
    }
  }

  /// The user for copying a backup of a store: root copies as the owner where the owner can write the copy.
  func identity(
    forCopyOf store: String, to target: String
  ) throws(InstarError) -> ProcessIdentity {
    let identity = try identity(forRecoveryOf: store)
    guard rights == .administrator, case .user(let user) = identity,
      !user.mayMakeFiles(beside: target)
    else { return identity }
    return .inherited
  }

  /// Refuses a backup whose path another user than the store's owner may have chosen. The ledger has the paths that the
  /// keepers of former owners named, and root's keeper would work on any file at them.
  ///
  /// - Throws: `unsafePath`.
  func requireTrusted(_ backup: BackupReference) throws(InstarError) {
    if rights == .caller { return }
    if rights == .storeOwner, owner(of: backup.store) == nil {
      throw Self.untrusted(
        backup,
        cause: "Instar cannot tell whose backup this is: the store is gone, or another user can "
          + "change its path")
    }
    guard backup.path.hasSuffix("/" + backup.name),
      rights == .administrator || isBesideStore(backup)
    else {
      throw Self.untrusted(
        backup, cause: "'\(backup.path)' is not a path at which Instar keeps this backup")
    }
    // Earlier configurations may have had other folders for copies.
    if let copy = backup.copy, !backup.hasName(ofCopy: copy) {
      throw Self.untrusted(
        backup, cause: "'\(copy)' is not a path at which Instar keeps copies of this backup")
    }
  }

  private func isBesideStore(_ backup: BackupReference) -> Bool {
    let end = "\(InstarFolder.name)/\(backup.name)"
    guard backup.path.hasSuffix("/" + end) else { return false }
    let store = backup.path.dropLast(end.count) + backup.store.lastName
    // The folder may be spelled with a symbolic link of root's.
    return store == backup.store || ledgerPath(of: String(store)).text == backup.store
  }

  private static func untrusted(_ backup: BackupReference, cause: String) -> InstarError {
    InstarError(
      .unsafePath, "cannot use the backup of run \(backup.run)", store: backup.store, cause: cause,
      state: "unchanged",
      next: "as root, run: instarctl backups list \(CommandText.quoted(backup.store))")
  }

  /// - Parameter requireTrust: Throws if another user than the owner may have changed the store's path.
  private func identity(
    for store: String, requireTrust: (_ owner: UInt32) throws(InstarError) -> Void
  ) throws(InstarError) -> ProcessIdentity {
    switch rights {
    case .caller: return .inherited
    case .administrator: return try identity(ofNamedStore: store)
    case .storeOwner:
      let owner = try StoreTrust.owner(of: store)
      let identity = try identity(ofOwner: owner, store)
      try requireTrust(owner)
      return identity
    }
  }

  private func identity(ofNamedStore store: String) throws(InstarError) -> ProcessIdentity {
    // If the owner cannot be read, the keeper reports why.
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
        cause:
          "the store belongs to user \(ProcessIdentity.label(of: owner)); this process runs as user "
          + "\(ProcessIdentity.label(of: ownUser)) and cannot act as another user",
        state: "unchanged",
        next: "watch the store with instard.service, or run instard as user "
          + ProcessIdentity.label(of: owner))
    }
    return .user(ProcessIdentity.User(uid: owner))
  }
}
