import Foundation
import InstarConfiguration
import InstarLinux
import InstarSchema
import Synchronization

/// Listens for clients that read the metrics, each of which has a thread of its own (`MetricsSession`).
///
/// No client holds up the daemon or another client for long. The loop is asked for the metrics at most twice a second,
/// however many clients there are. A client too many cuts off the one that has been connected longest: a Prometheus
/// server is served within milliseconds, so clients that are slow or silent never keep it out.
final class MetricsSocket: Sendable {
  private static let clientLimit = 32
  /// Clients that were cut off count until their threads have ended. Beyond this number no client is taken.
  private static let threadLimit = 128
  private static let stackBytes = 256 << 10
  /// How long clients get the same metrics.
  private static let validity = Duration.milliseconds(500)
  /// How long the loop may take. Prometheus waits ten seconds.
  private static let patience = Duration.seconds(8)

  private let descriptor: Int32
  private let path: String?
  private let ask: @Sendable (@escaping @Sendable (String) -> Void) -> Bool
  /// The clients, the one that has been connected longest first, and all whose threads have not ended.
  private let sessions = Mutex<(open: [MetricsSession], all: [MetricsSession])>(([], []))
  private let known = Mutex<(text: String, at: ContinuousClock.Instant)?>(nil)
  /// Takes the connections, until it is cancelled.
  nonisolated(unsafe) private let source: any DispatchSourceRead

  /// - Parameter ask: Has the daemon's loop call back with the metrics; `false` where the loop has ended.
  /// - Throws: `metricsFailed` where nobody can connect.
  init(
    at address: MetricsSettings.Address,
    ask: @escaping @Sendable (@escaping @Sendable (String) -> Void) -> Bool
  ) throws(InstarError) {
    self.ask = ask
    switch address {
    case .loopback(let host, let port):
      path = nil
      descriptor = try LoopbackSocket.listen(host: host, port: port)
    case .socket(let path):
      self.path = path
      do throws(InstarError) {
        descriptor = try UnixSocket.listen(at: path)
      } catch {
        throw InstarError(
          .metricsFailed, error.what, cause: error.cause,
          next: "name another file in 'metrics', then run: systemctl reload instard")
      }
    }
    let descriptor = descriptor
    source = DispatchSource.makeReadSource(
      fileDescriptor: descriptor, queue: DispatchQueue(label: "metrics"))
    source.setEventHandler { [weak self] in self?.acceptAll() }
    source.setCancelHandler { Glibc.close(descriptor) }
    source.resume()
  }

  /// Cuts off all clients and takes no more.
  func close() {
    source.cancel()
    for session in sessions.withLock({ $0.open }) { session.close() }
    if let path { unlink(path) }
  }

  private func acceptAll() {
    while let connection = UnixSocket.accept(from: descriptor) {
      let session = MetricsSession(connection: connection) { [weak self] in self?.text() }
      let surplus: MetricsSession? = sessions.withLock { sessions in
        // The connection is closed with the session.
        guard sessions.all.count < Self.threadLimit else { return session }
        sessions.all.append(session)
        sessions.open.append(session)
        return sessions.open.count > Self.clientLimit ? sessions.open.removeFirst() : nil
      }
      surplus?.close()
      if surplus === session { continue }
      let thread = Thread { [weak self] in
        session.serve()
        session.close()
        self?.sessions.withLock { sessions in
          sessions.open.removeAll { $0 === session }
          sessions.all.removeAll { $0 === session }
        }
      }
      thread.stackSize = Self.stackBytes
      thread.start()
    }
  }

  /// The metrics; `nil` where the daemon stops, or does not answer.
  private func text() -> String? {
    // One client asks, and the others wait for its answer.
    known.withLock { known in
      if let known, known.at + Self.validity > .now { return known.text }
      let answer = AwaitedValue<String>()
      guard ask({ answer.give($0) }), let text = answer.wait(within: Self.patience) else {
        return nil
      }
      known = (text, .now)
      return text
    }
  }
}
