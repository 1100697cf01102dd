import Foundation
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire
import Synchronization

/// The holds and runs in the state folder, with the rights of one client.
///
/// The session's own thread uses it: reading a ledger or waiting for a lock must not stop the daemon's loop.
///
/// While a call is answered, an owner may replace a folder of a path by a symbolic link to somebody else's folder. So
/// the path that the state folder recorded decides about the right to a hold or a run, and not the path of the call.
struct ClientRecords: Sendable {
  let stateFolder: StateFolder
  let client: ControlClient
  /// One ordinary user at a time: a large ledger takes a second of processor time.
  private static let reading = Mutex(())

  // MARK: Holds

  /// Returns the holds that the client may see, the oldest first.
  func holds() throws(InstarError) -> Manager.HoldsReply {
    let (holds, unreadable) = try stateFolder.holds()
    return Manager.HoldsReply(
      holds: holds.filter { client.isAdmin || owns($0.store) },
      unreadable: client.isAdmin ? unreadable : [])
  }

  func hold(_ store: String, why: String) throws(InstarError) -> Hold {
    do throws(InstarError) {
      return try stateFolder.hold(store, by: client.name, why: why) {
        (path: StorePath, file: FileOrigin) throws(InstarError) in
        guard client.isAdmin || owns(file, at: path.text) else {
          throw client.refusal(to: "hold", store)
        }
      }
    } catch {
      // A client must not learn which files are in folders that only others can read.
      let path = StorePath(store).text
      let folder = stat(of: path.parentFolder)
      let ownsFolder = folder.map { $0.isFolder && $0.st_uid == client.user } ?? false
      guard client.isAdmin || owns(path) || ownsFolder else {
        throw client.refusal(to: "hold", store)
      }
      throw error
    }
  }

  /// - Parameter identifier: Of the hold to end; `nil` for any.
  /// - Returns: The hold that has ended; `nil` where there was none.
  func release(_ store: String, only identifier: String? = nil) throws(InstarError) -> Hold? {
    guard client.isAdmin || owns(StorePath(store).text) else {
      throw client.refusal(to: "release", store)
    }
    guard let hold = try stateFolder.hold(on: store) else { return nil }
    guard mayChange(hold, of: store) else { throw client.refusal(to: "release", store) }
    guard identifier == nil || identifier == hold.id else { return nil }
    try stateFolder.release(hold)
    return hold
  }

  private func mayChange(_ hold: Hold, of store: String) -> Bool {
    // The held file may have been moved.
    client.isAdmin || owns(hold.store) || owns(hold.file, at: store)
  }

  // MARK: Runs

  /// Finds the runs that the client may see, oldest first. Their reports are read later, some at a time: the client may
  /// take them slowly.
  ///
  /// - Parameter ownsWatchedStore: Whether the client, an ordinary user, owns a watched store. A user without one sees
  ///   no run, so the ledger is not read.
  func history(
    _ filter: Manager.RunFilter, ownsWatchedStore: () -> Bool
  ) throws(InstarError) -> (runs: [RecordedRun], unreadableLines: Int) {
    let limit = max(0, min(filter.limit ?? .max, Manager.historyLimit))
    if client.isAdmin {
      return try stateFolder.recordedRuns(
        of: filter.store, limit: limit, where: filter.allows)
    }
    let mayHaveRuns = ownsWatchedStore()
    if let store = filter.store, !mayHaveRuns || !owns(StorePath(store).text) {
      throw client.refusal(to: "read the history of", store)
    }
    guard mayHaveRuns else { return ([], 0) }
    let found = try Self.reading.withLock { _ throws(InstarError) in
      try stateFolder.recordedRuns(of: filter.store, where: filter.allows).runs
    }
    // Not while the ledger is read: other users would wait for a file system that does not answer.
    let own = Set(found.map(\.store)).filter { owns($0) }
    // The lines that cannot be read may be of runs on other stores.
    return (Array(found.filter { own.contains($0.store) }.suffix(limit)), 0)
  }

  // MARK: Owners

  private func owns(_ path: String) -> Bool { WatchedVersion.owner(of: path) == client.user }

  /// Whether a path names this file, and it is the client's. Both by one lstat(2).
  private func owns(_ file: FileOrigin, at path: String) -> Bool {
    guard let status = stat(of: path), status.isRegular, status.st_uid == client.user,
      FileIdentity(status) == file.identity
    else { return false }
    // Or a new file that has the inode of a deleted one.
    return (try? FileOrigin(of: path)) == file
  }
}
