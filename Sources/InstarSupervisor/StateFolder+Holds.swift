import Foundation
import InstarLinux
public import InstarSchema
public import InstarWire
import Synchronization

/// Holds: one file each, `holds/ID.json`. A file never changes, so one that was read once is not read again.
extension StateFolder {
  /// The folder of the holds. It changes when a hold is placed or released.
  public var holdsFolder: String { path + "/holds" }

  /// Returns all holds, the oldest first.
  ///
  /// - Throws: `stateFolderFailed` where one of them cannot be read: its store must not be migrated, and only the file
  ///   knows which store that is.
  public func holds() throws(InstarError) -> [Hold] {
    guard access(holdsFolder, F_OK) == 0 || errno != ENOENT else { return [] }
    let files = Set(try names(in: holdsFolder).filter { $0.hasSuffix(".json") })
    var holds = knownHolds.withLock { $0.filter { files.contains($0.key) } }
    for name in files where holds[name] == nil {
      let file = holdsFolder + "/" + name
      do throws(InstarError) {
        holds[name] = try WireCoder.message(Hold.self, from: try read(file))
      } catch {
        // Released since the folder was listed.
        if access(file, F_OK) != 0, errno == ENOENT { continue }
        throw InstarError(
          .stateFolderFailed, "cannot read the hold '\(file)'",
          cause: error.code == .protocolViolation ? "the file is not a hold" : error.cause,
          next:
            "to see the store's name, run: cat \(CommandText.quoted(file)); then remove the file "
            + "and hold the store again")
      }
    }
    knownHolds.withLock { $0 = holds }
    return holds.values.sorted { ($0.since, $0.id) < ($1.since, $1.id) }
  }

  /// Returns the hold on a store; `nil` without one. A hold of the path counts before a hold of the file.
  public func hold(on store: String) throws(InstarError) -> Hold? {
    let holds = try holds()
    guard !holds.isEmpty else { return nil }
    let path = StorePath(store)
    if let hold = holds.first(where: { path.isNamed(by: $0.store) }) { return hold }
    // A store that is missing or cannot be read has no other path.
    guard let file = try? FileOrigin(of: store) else { return nil }
    return holds.first { $0.file == file }
  }

  /// Places a hold on a store. It is on disk when this returns.
  ///
  /// - Parameters:
  ///   - user: Who places it.
  ///   - run: The restore that places it.
  /// - Throws: `missingStore`; `heldStore` where the store is held already; `stateFolderFailed`.
  @discardableResult
  public func hold(
    _ store: String, by user: String, why: String, run: String? = nil
  ) throws(InstarError) -> Hold {
    let what = "cannot hold '\(store)'"
    let file: FileOrigin
    do throws(InstarError) {
      file = try FileOrigin(of: store)
    } catch {
      throw error.about(what, store: store, next: "check the path")
    }
    let lock = try FolderLock.lock(holdsFolder)
    defer { lock.release() }
    if let hold = try self.hold(on: store) {
      throw InstarError(
        .heldStore, what, store: store, cause: "already \(hold.sentence)", state: "unchanged",
        next: "to change the reason, first run: \(releaseCommand(of: hold))")
    }
    var hold = Hold(
      id: RunIdentifier.make(), store: StorePath(store).text, device: file.device,
      inode: file.inode,
      createdNanoseconds: file.createdNanoseconds, by: user,
      since: Date().timeIntervalSince1970, why: why)
    hold.run = run
    try DurableFile.write(
      try WireCoder.line(hold), to: "\(holdsFolder)/\(hold.id).json", mode: 0o600, owner: owner)
    return hold
  }

  /// The command that ends a hold in this folder.
  public func releaseCommand(of hold: Hold) -> String {
    completing(hold.releaseCommand, store: hold.store)
  }

  /// Ends the hold on a store.
  ///
  /// - Returns: The hold; `nil` where there was none.
  public func release(_ store: String) throws(InstarError) -> Hold? {
    guard let hold = try hold(on: store) else { return nil }
    try remove(hold)
    return hold
  }

  /// Ends the hold that a restore placed, because the store was not restored.
  func releaseHold(ofRun run: String) throws(InstarError) {
    for hold in try holds() where hold.run == run { try remove(hold) }
  }

  private func remove(_ hold: Hold) throws(InstarError) {
    try RunIdentifier.require(hold.id)
    try DurableFile.remove("\(holdsFolder)/\(hold.id).json")
  }
}

extension Hold {
  /// The file that the store's path named when the hold was placed.
  fileprivate var file: FileOrigin {
    FileOrigin(device: device, inode: inode, createdNanoseconds: createdNanoseconds)
  }

  /// Whether the path names another file now, or none.
  public var isReplaced: Bool {
    // A file that cannot be read is not the one that was.
    (try? FileOrigin(of: store)) != file
  }
}
