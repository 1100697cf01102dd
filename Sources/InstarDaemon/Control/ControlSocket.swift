import Foundation
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire
import Synchronization

/// Listens for clients of `io.instar.Manager`, each of which has a thread of its own (`ControlSession`).
///
/// No client holds up the daemon or another client for long: all of a client's calls are limited in number, size and
/// time, and the loop only ever hands out what it has in memory. Holds and the ledger are on disk: the client's thread
/// reads and writes them (`ClientRecords`).
final class ControlSocket: Sendable {
  private static let stackBytes = 512 << 10

  /// Of the socket that this process made; `nil` for one of the service manager's.
  private let path: String?
  private let descriptor: Int32
  private let feed: EventFeed
  private let stateFolder: StateFolder
  private let ask: @Sendable (ControlRequest) -> Bool
  private let adminGroup = getgrnam(ControlClient.adminGroup)?.pointee.gr_gid
  private let places = Mutex(ClientPlaces())
  private let sessions = Mutex<[ObjectIdentifier: ControlSession]>([:])
  /// Takes the connections, until it is cancelled.
  nonisolated(unsafe) private let source: any DispatchSourceRead

  /// - Parameters:
  ///   - passed: A listening socket that the service manager passed. It stays when this process ends: a client that
  ///     connects then has the daemon started again.
  ///   - feed: The events that clients may follow.
  ///   - stateFolder: Of the daemon, with the holds and the ledger.
  ///   - ask: Hands a request to the daemon's loop; `false` where that has ended.
  /// - Throws: `stateFolderFailed` where nobody can connect.
  init(
    at path: String, passed: Int32? = nil, feed: EventFeed, stateFolder: StateFolder,
    ask: @escaping @Sendable (ControlRequest) -> Bool
  ) throws(InstarError) {
    self.path = passed == nil ? path : nil
    self.feed = feed
    self.stateFolder = stateFolder
    self.ask = ask
    if let passed {
      // All pending connections are taken at once, until there is none.
      _ = fcntl(passed, F_SETFL, fcntl(passed, F_GETFL) | O_NONBLOCK)
      descriptor = passed
    } else {
      descriptor = try UnixSocket.listen(at: path)
    }
    source = DispatchSource.makeReadSource(
      fileDescriptor: descriptor, queue: DispatchQueue(label: "control"))
    source.setEventHandler { [weak self] in self?.acceptAll() }
    source.resume()
  }

  /// Cuts off all clients and takes no more.
  func close() {
    source.cancel()
    for session in sessions.withLock({ Array($0.values) }) { session.close() }
    if let path { unlink(path) }
  }

  private func acceptAll() {
    while let connection = UnixSocket.accept(from: descriptor) {
      let channel = LineChannel(
        descriptor: connection, lineLimitBytes: Varlink.callLimitBytes,
        terminator: Varlink.terminator)
      guard let peer = UnixSocket.peer(of: connection) else { continue }
      // The channel closes the connection with its last reference.
      // Each time: instar-coordinator may be installed while the daemon runs.
      let coordinator = getpwnam(ControlClient.coordinatorUser)?.pointee.pw_uid
      let client = ControlClient(peer, adminGroup: adminGroup, coordinator: coordinator)
      let session = ControlSession(
        channel, client: client, feed: feed, stateFolder: stateFolder, ask: ask)
      do throws(InstarError) {
        try places.withLock { (places) throws(InstarError) in try places.admit(client) }
      } catch {
        session.turnAway(error)
        continue
      }
      start(session)
    }
  }

  private func start(_ session: ControlSession) {
    sessions.withLock { $0[ObjectIdentifier(session)] = session }
    let thread = Thread { [self] in
      session.serve()
      session.close()
      sessions.withLock { $0[ObjectIdentifier(session)] = nil }
      places.withLock { $0.dismiss(session.client) }
    }
    thread.stackSize = Self.stackBytes
    thread.start()
  }
}
