import Foundation
public import InstarLinux
public import InstarSchema
public import InstarWire
import Synchronization

/// Holds: one file each, named as `HoldName` says. A file never changes, so one that was read once is not read again.
extension StateFolder {
  /// The folder of the holds. It changes when a hold is placed or released.
  public var holdsFolder: String { path + "/holds" }

  /// Returns all holds, the oldest first.
  ///
  /// - Returns: `unreadable` has one error for each hold that cannot be read.
  /// - Throws: `stateFolderFailed` where the folder cannot be read.
  public func holds() throws(InstarError) -> (holds: [Hold], unreadable: [InstarError]) {
    let (holds, unreadable) = try readHolds()
    return (holds, unreadable.map(\.error))
  }

  /// Whether a store may be held.
  var hasHolds: Bool {
    // What cannot be read is reported where it matters.
    (try? readHolds()).map { !$0.holds.isEmpty || !$0.unreadable.isEmpty } ?? true
  }

  private func readHolds() throws(InstarError) -> (
    holds: [Hold], unreadable: [(name: HoldName, error: InstarError)]
  ) {
    guard access(holdsFolder, F_OK) == 0 || errno != ENOENT else { return ([], []) }
    let files = try names(in: holdsFolder).filter { $0.hasSuffix(".json") }
    let present = Set(files)
    var holds = knownHolds.withLock { $0.filter { present.contains($0.key) } }
    var unreadable: [(name: HoldName, error: InstarError)] = []
    for name in files where holds[name] == nil {
      let file = holdsFolder + "/" + name
      do throws(InstarError) {
        holds[name] = try WireCoder.message(Hold.self, from: try read(file))
      } catch {
        // Released since the folder was listed.
        if access(file, F_OK) != 0, errno == ENOENT { continue }
        unreadable.append((HoldName(file: name), Self.unreadable(file, error)))
      }
    }
    knownHolds.withLock { $0 = holds }
    return (holds.values.sorted { ($0.since, $0.id) < ($1.since, $1.id) }, unreadable)
  }

  private static func unreadable(_ file: String, _ error: InstarError) -> InstarError {
    let isDamaged = error.code == .protocolViolation
    return InstarError(
      .stateFolderFailed, "cannot read the hold '\(file)'",
      cause: isDamaged ? "the file is not a hold" : error.cause,
      next: isDamaged
        ? "to see what is left of it, run: cat \(CommandText.quoted(file)); to end the hold, run: "
          + "rm \(CommandText.quoted(file))" : error.next)
  }

  /// Returns the hold on a store; `nil` without one. A hold of the path counts before a hold of the file.
  ///
  /// The path of a hold is not resolved again: its user may have replaced a folder of it by a symbolic link to another
  /// user's folder.
  ///
  /// - Throws: `stateFolderFailed` where a hold that may be on this store cannot be read: the store must not be
  ///   migrated. Holds of other stores do not matter.
  public func hold(on store: String) throws(InstarError) -> Hold? {
    // A store that is missing or cannot be read has no other path.
    try hold(on: StorePath(store), { try? FileOrigin(of: store) })
  }

  /// - Parameter path: Not resolved without holds: that would be a tenth of what `instarctl` does for a probed store.
  private func hold(
    on path: @autoclosure () -> StorePath, _ origin: () -> FileOrigin?
  ) throws(InstarError) -> Hold? {
    let (holds, unreadable) = try readHolds()
    guard !holds.isEmpty || !unreadable.isEmpty else { return nil }
    let path = path()
    if let hold = holds.first(where: { $0.store == path.text }) { return hold }
    let file = origin()
    if let file, let hold = holds.first(where: { $0.file == file }) { return hold }
    if let error = unreadable.first(where: { $0.name.mayBeOf(path, file: file) })?.error {
      throw error
    }
    return nil
  }

  /// Places a hold on a store. It is on disk when this returns.
  ///
  /// - Parameters:
  ///   - user: Who places it.
  ///   - run: The restore that places it.
  ///   - requireRight: Throws where the user has no right to the file at a path. It is called before anything is read
  ///     or written about them. From then on, both stay the same, also if the user replaces a folder by a symbolic
  ///     link.
  /// - Throws: `wrongUsage` for a long reason; `missingStore`; `heldStore` where the store is held already;
  ///   `stateFolderFailed`.
  @discardableResult
  public func hold(
    _ store: String, by user: String, why: String, run: String? = nil,
    requireRight: (StorePath, FileOrigin) throws(InstarError) -> Void = { _, _ in }
  ) throws(InstarError) -> Hold {
    let what = "cannot hold '\(store)'"
    try Hold.requireShort(why, what)
    let path = StorePath(store)
    let file: FileOrigin
    do throws(InstarError) {
      file = try FileOrigin(of: path.text)
    } catch {
      throw error.about(what, store: store, next: "check the path")
    }
    try requireRight(path, file)
    let lock = try FolderLock.lock(holdsFolder)
    defer { lock.release() }
    if let hold = try self.hold(on: path, { file }) {
      throw InstarError(
        .heldStore, what, store: store, cause: "already \(hold.sentence)", state: "unchanged",
        next: "to change the reason, first run: \(releaseCommand(of: hold))")
    }
    return try place(path, file, by: user, why: why, run: run)
  }

  /// Holds the path of a store that is gone while its file is written, and then the path and the file.
  ///
  /// The hold is on disk before the file exists: instard would migrate the new file.
  ///
  /// - Parameters:
  ///   - user: Who writes the file.
  ///   - write: Writes it. If this throws, the hold ends, unless an interrupted one left the file.
  /// - Returns: The hold. One that a person placed on the path before stays as it is. Two others are replaced: one of
  ///   an interrupted restore, because its recovery would end it, and one that a killed call of this left on the path.
  public func hold(
    missing store: String, by user: String, why: String,
    whileWriting write: () async throws(InstarError) -> Void
  ) async throws(InstarError) -> Hold {
    let path = StorePath(store)
    let former = try hold(on: path.text)
    let noFile = FileOrigin(device: 0, inode: 0, createdNanoseconds: 0)
    if let former, former.run == nil, former.file != noFile {
      try await write()
      return former
    }
    let wasThere = access(path.text, F_OK) == 0
    let first = try placeLocked(path, noFile, by: user, why: why)
    do throws(InstarError) {
      try await write()
    } catch {
      // A keeper that was ended may have put the file in place: it is not to be migrated. After any other error a file
      // at this path is somebody else's.
      let wasEnded = [.interrupted, .keeperDied].contains(error.code)
      if wasThere || !wasEnded || access(path.text, F_OK) != 0 { try release(first) }
      throw error
    }
    let hold = try placeLocked(path, try FileOrigin(of: path.text), by: user, why: why)
    try release(first)
    if let former { try release(former) }
    return hold
  }

  private func placeLocked(
    _ path: StorePath, _ file: FileOrigin, by user: String, why: String
  ) throws(InstarError) -> Hold {
    let lock = try FolderLock.lock(holdsFolder)
    defer { lock.release() }
    return try place(path, file, by: user, why: why)
  }

  /// Writes the file of a hold. The caller has the lock of the folder.
  private func place(
    _ path: StorePath, _ file: FileOrigin, by user: String, why: String, run: String? = nil
  ) throws(InstarError) -> Hold {
    var hold = Hold(
      id: RunIdentifier.make(), store: path.text, device: file.device, inode: file.inode,
      createdNanoseconds: file.createdNanoseconds, by: user, since: Date().timeIntervalSince1970,
      why: why)
    hold.run = run
    try DurableFile.write(
      try WireCoder.line(hold), to: "\(holdsFolder)/\(HoldName(hold).text)", mode: 0o600,
      owner: owner)
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
    try release(hold)
    return hold
  }

  /// Ends the hold that a restore placed, because the store was not restored.
  package func releaseHold(ofRun run: String) throws(InstarError) {
    for hold in try holds().holds where hold.run == run { try release(hold) }
  }

  /// Ends a hold that this value has read or placed.
  public func release(_ hold: Hold) throws(InstarError) {
    // A hold that was just placed, or that another thread has not read, has the name that it was given.
    let name = knownHolds.withLock { $0.first { $0.value == hold }?.key } ?? HoldName(hold).text
    try DurableFile.remove("\(holdsFolder)/\(name)", owner: owner)
  }
}

extension Hold {
  /// The file that the store's path named when the hold was placed.
  public var file: FileOrigin {
    FileOrigin(device: device, inode: inode, createdNanoseconds: createdNanoseconds)
  }

  /// Whether the path names another file now, or none. `false` where this user may not look into a folder of the path.
  public var isReplaced: Bool {
    guard access(store, F_OK) == 0 || errno != EACCES else { return false }
    // A file that cannot be read is not the one that was.
    return (try? FileOrigin(of: store)) != file
  }
}
