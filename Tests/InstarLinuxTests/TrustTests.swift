import Foundation
import Glibc
import InstarLinux
import InstarSchema
import InstarTestSupport
import Testing

/// Files of root, and of users that do not exist: the checks compare numbers.
private let isRoot = geteuid() == 0
private let alice: UInt32 = 4001
private let mallory: UInt32 = 4666

@Suite("Trust in a folder of stores", .enabled(if: isRoot, "changing owners needs root"))
struct FolderTrustTests {
  @Test("a folder that a group can write, or that two users share, would have its stores refused")
  func problems() throws {
    let folder = try TemporaryFolder(mode: 0o700)
    let inner = folder.path("inner")
    try FileManager.default.createDirectory(
      atPath: inner, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o755])
    #expect(StoreTrust.problem(ofFolder: inner) == nil)
    #expect(chown(folder.path, alice, 0) == 0)
    #expect(StoreTrust.problem(ofFolder: inner) == nil)
    #expect(chmod(inner, 0o775) == 0)
    #expect(StoreTrust.problem(ofFolder: inner)?.cause == "group root (0) can write '\(inner)'")
    #expect(chmod(inner, 0o755) == 0)
    #expect(chown(inner, mallory, 0) == 0)
    #expect(StoreTrust.problem(ofFolder: inner)?.code == .unsafePath)
    #expect(StoreTrust.problem(ofFolder: folder.path("missing")) == nil)
  }
}

@Suite("Trust in a plugin", .enabled(if: isRoot, "changing owners needs root"))
struct PluginTrustTests {
  let folder: TemporaryFolder
  let plugins: String
  let plugin: String

  init() throws {
    folder = try TemporaryFolder(mode: 0o700)
    plugins = folder.path("plugins")
    try FileManager.default.createDirectory(
      atPath: plugins, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o755])
    plugin = try folder.write("x", to: "plugins/Notes.so", mode: 0o644)
  }

  private func refusal(of plugin: String) throws -> InstarError {
    try instarError { try PluginTrust(owners: [0]).require(plugin) }
  }

  @Test("a plugin of root, in folders of root, below a sticky /tmp, is trusted")
  func trusted() throws {
    try PluginTrust(owners: [0]).require(plugin)
  }

  @Test("a plugin that others can write is refused, with the command that corrects it")
  func writable() throws {
    #expect(chmod(plugin, 0o664) == 0)
    var error = try refusal(of: plugin)
    #expect(error.code == .untrustedPlugin)
    #expect(error.cause == "group root (0) can write '\(plugin)'")
    #expect(error.next?.hasSuffix("chmod g-w '\(plugin)'") == true)
    #expect(chmod(plugin, 0o646) == 0)
    error = try refusal(of: plugin)
    #expect(error.cause == "everybody can write '\(plugin)'")
    #expect(error.next?.hasSuffix("chmod go-w '\(plugin)'") == true)
    #expect(chmod(plugin, 0o644) == 0)
    #expect(chmod(plugins, 0o775) == 0)
    #expect(try refusal(of: plugin).cause == "group root (0) can write '\(plugins)'")
  }

  @Test("a plugin of another user, or in a folder of another user, is refused")
  func foreign() throws {
    #expect(chown(plugin, mallory, 0) == 0)
    #expect(try refusal(of: plugin).cause == "'\(plugin)' belongs to user 4666, not to root")
    // Whose own daemon this is, is another matter.
    try PluginTrust(owners: [0, mallory]).require(plugin)
    #expect(chown(plugin, 0, 0) == 0)
    #expect(chown(folder.path, mallory, 0) == 0)
    let error = try refusal(of: plugin)
    #expect(error.cause == "'\(folder.path)' belongs to user 4666, not to root")
    #expect(error.next?.hasSuffix("chown -h root:root '\(folder.path)'") == true)
  }

  @Test("a link of root is followed, and its target is checked too")
  func links() throws {
    let link = folder.path("plugins/Link.so")
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "./Notes.so")
    try PluginTrust(owners: [0]).require(link)
    #expect(lchown(link, mallory, 0) == 0)
    #expect(try refusal(of: link).cause == "'\(link)' belongs to user 4666, not to root")

    // A link of root that leads out, to where another user can put what he likes.
    let home = folder.path("home")
    try FileManager.default.createDirectory(atPath: home, withIntermediateDirectories: false)
    try folder.write("x", to: "home/Notes.so", mode: 0o644)
    #expect(chown(home, mallory, 0) == 0)
    let leadsOut = folder.path("plugins/Out.so")
    try FileManager.default.createSymbolicLink(
      atPath: leadsOut, withDestinationPath: "../home/Notes.so")
    #expect(try refusal(of: leadsOut).cause == "'\(home)' belongs to user 4666, not to root")
    let circle = folder.path("plugins/Circle.so")
    try FileManager.default.createSymbolicLink(atPath: circle, withDestinationPath: circle)
    #expect(try refusal(of: circle).code == .untrustedPlugin)
  }

  @Test("a plugin must be a regular file")
  func noFile() throws {
    #expect(try refusal(of: plugins).cause == "'\(plugins)' is not a regular file")
    #expect(try refusal(of: plugins + "/None.so").code == .missingPlugin)
    #expect(try refusal(of: plugin + "/None.so").code == .untrustedPlugin)
  }
}

@Suite("Trust in a store", .enabled(if: isRoot, "changing owners needs root"))
struct StoreTrustTests {
  let folder: TemporaryFolder
  /// A folder of alice.
  let home: String
  let store: String

  init() throws {
    folder = try TemporaryFolder(mode: 0o700)
    #expect(chmod(folder.path, 0o755) == 0)
    home = folder.path("home")
    try FileManager.default.createDirectory(
      atPath: home, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    store = try folder.write("x", to: "home/a.store", mode: 0o600)
    for path in [home, store] { #expect(chown(path, alice, alice) == 0) }
  }

  private func refusal(of store: String, owner: UInt32 = alice) throws -> InstarError {
    let error = try instarError { try StoreTrust(owner: owner).require(store) }
    let ofBatch = try instarError {
      try StoreTrust(owner: owner, folders: TrustedFolders()).require(store)
    }
    #expect(ofBatch == error)
    return error
  }

  @Test("one batch of stores checks a folder once, and each store itself")
  func batch() throws {
    let folders = TrustedFolders()
    let trust = StoreTrust(owner: alice, folders: folders)
    let identity = try trust.require(store)
    #expect(try trust.confirm(store) == identity)
    let other = (store as NSString).deletingLastPathComponent + "/other.store"
    #expect(symlink(store, other) == 0)
    #expect(try instarError { try trust.require(other) }.code == .unsafePath)
    #expect(unlink(other) == 0)
    #expect(chmod(store, 0o666) == 0)
    #expect(try instarError { try trust.require(store) }.code == .unsafePath)
    #expect(chmod(store, 0o600) == 0)
    try trust.require(store)
    // Another owner trusts other folders.
    #expect(
      try instarError { try StoreTrust(owner: mallory, folders: folders).require(store) }.code
        == .unsafePath)
    // Its owner opened the folder to others: the next batch finds that.
    #expect(chmod((store as NSString).deletingLastPathComponent, 0o777) == 0)
    #expect(try refusal(of: store).code == .unsafePath)
  }

  @Test("a store in its owner's hands is trusted, and met again by a way without links")
  func trusted() throws {
    #expect(try StoreTrust.owner(of: store) == alice)
    let identity = try StoreTrust(owner: alice).require(store)
    #expect(try StoreTrust(owner: alice).confirm(store) == identity)
  }

  @Test("a store that another user has put into the owner's folder is refused")
  func planted() throws {
    #expect(chown(store, mallory, mallory) == 0)
    let error = try refusal(of: store, owner: mallory)
    #expect(error.code == .unsafePath)
    #expect(error.state == "unchanged")
    #expect(
      error.cause
        == "'\(home)' belongs to user 4001, not to root or the store's owner 4666")
    // Also one of root: a keeper for it would run as root.
    #expect(chown(store, 0, 0) == 0)
    #expect(try refusal(of: store, owner: 0).code == .unsafePath)
    // It was alice's a moment ago.
    #expect(try refusal(of: store).code == .unsafePath)
  }

  @Test("a store that its group or everybody can write is refused, and so is one in such a folder")
  func writable() throws {
    #expect(chmod(store, 0o660) == 0)
    var error = try refusal(of: store)
    #expect(error.code == .unsafePath)
    #expect(error.cause == "group 4001 can write '\(store)'")
    #expect(error.next?.hasSuffix("chmod g-w '\(store)'") == true)
    #expect(chmod(store, 0o602) == 0)
    #expect(try refusal(of: store).cause == "everybody can write '\(store)'")
    #expect(chmod(store, 0o600) == 0)
    // In a sticky folder nobody can take the store away, but put a journal beside it.
    #expect(chmod(home, 0o1777) == 0)
    error = try refusal(of: store)
    #expect(error.cause == "everybody can write '\(home)'")
    // Without write access for everybody a folder such as /tmp would be of no use.
    #expect(error.next == "move the store to a folder that only its owner can write")
    // Further up it does no harm.
    #expect(chmod(home, 0o700) == 0)
    #expect(chmod(folder.path, 0o1777) == 0)
    try StoreTrust(owner: alice).require(store)
  }

  @Test(
    "a store that a user in its access control list can write is refused; one that may only be read is not"
  )
  func accessControlList() throws {
    func allow(_ permissions: UInt8) throws {
      let list = ExtendedAttributes.accessList(of: mallory, permissions: permissions)
      try #require(ExtendedAttributes.set("system.posix_acl_access", list, of: store))
    }
    try allow(6)
    let error = try refusal(of: store)
    #expect(error.code == .unsafePath)
    #expect(error.cause == "the access control list of '\(store)' lets others write it")
    #expect(error.next?.hasSuffix("setfacl -b '\(store)'") == true)
    try allow(4)
    try StoreTrust(owner: alice).require(store)
  }

  @Test("a link is refused at the end of the way, and on it unless it is root's")
  func links() throws {
    let link = folder.path("home/link.store")
    #expect(symlink(store, link) == 0)
    #expect(try instarError { _ = try StoreTrust.owner(of: link) }.code == .unsafePath)
    #expect(try refusal(of: link).cause == "the store is a symbolic link")

    let way = folder.path("way")
    #expect(symlink("home", way) == 0)
    try StoreTrust(owner: alice).require(way + "/a.store")
    _ = try StoreTrust(owner: alice).confirm(way + "/a.store")
    #expect(lchown(way, mallory, 0) == 0)
    #expect(
      try refusal(of: way + "/a.store").cause
        == "'\(way)' belongs to user 4666, not to root or the store's owner 4001")
  }

  @Test("a store with a second hard link is refused, with the other name where it is near")
  func hardLinks() throws {
    let near = folder.path("home/near")
    try FileManager.default.createDirectory(
      atPath: near, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    let other = near + "/it's.store"
    #expect(Glibc.link(store, other) == 0)
    var error = try refusal(of: store)
    #expect(error.code == .unsafePath && error.state == "unchanged")
    #expect(
      error.cause == "the file has 2 names (hard links), also '\(near)/it'\\''s.store'; "
        + "SQLite protects a store only if all apps use the same name")
    #expect(error.next?.hasSuffix("find / -samefile '\(store)'") == true)
    try FileManager.default.createDirectory(
      atPath: near + "/deep", withIntermediateDirectories: false)
    #expect(rename(other, near + "/deep/b.store") == 0)
    error = try refusal(of: store)
    #expect(error.cause.contains("the others are not in folders near it"))
    // A recovery must finish all the same.
    _ = try StoreTrust(owner: alice).confirm(store)
    #expect(unlink(near + "/deep/b.store") == 0)
    try StoreTrust(owner: alice).require(store)
  }

  @Test("a store must be a regular file that exists")
  func noFile() throws {
    #expect(mkfifo(home + "/fifo.store", 0o600) == 0)
    #expect(chown(home + "/fifo.store", alice, alice) == 0)
    #expect(try refusal(of: home + "/fifo.store").cause == "not a regular file")
    #expect(try refusal(of: home + "/none.store").code == .missingStore)
    #expect(try refusal(of: store + "/none.store").code == .missingStore)
  }

  @Test("the folders of a store that is gone tell whose it was")
  func ownerOfMissing() throws {
    #expect(try StoreTrust.owner(of: home + "/gone.store") == alice)
    try FileManager.default.createDirectory(
      atPath: home + "/.instar", withIntermediateDirectories: false)
    #expect(chown(home + "/.instar", mallory, mallory) == 0)
    #expect(try StoreTrust.owner(of: home + "/gone.store") == mallory)
    #expect(
      try instarError { _ = try StoreTrust.owner(of: folder.path("no/gone.store")) }.code
        == .missingStore)
  }
}
