internal import CCurl
import Foundation
import InstarLinux
import InstarSchema
import Synchronization

/// The thread on which libcurl makes all requests of one client.
///
/// **Who owns what.**
/// - The thread owns libcurl: the multi handle with its connections, and `transfers`, one for each request that it
///   makes. Nobody else calls libcurl, except that all may call `curl_multi_wakeup`.
/// - Other threads write what they want into `orders`, under its lock, and wake the thread up.
/// - A request has a lock of its own (see `HTTPRequest`).
///
/// **States.**
/// - *open*: `orders.multi` is set. The thread follows the orders, and waits for the sockets of all transfers at once.
/// - *closing*: `orders.isClosing` is set. A new request ends at once. The thread ends all others.
/// - *ended*: `orders.hasEnded` is set. The thread first takes the handle out of `orders.multi`, so that nobody uses it
///   any more, then frees it. Resuming those who wait in `orders.closers` is the last thing that it does.
///
/// The thread keeps this object alive until it has ended. Its client does not: it closes it when it is released.
final class HTTPThread: Sendable {
  /// A handle of libcurl that may only be used as said above.
  private struct Multi: @unchecked Sendable {
    let handle: UnsafeMutableRawPointer
  }

  private struct Orders {
    var multi: Multi?
    var isClosing = false
    var hasEnded = false
    var added: [HTTPRequest] = []
    var removed: [HTTPRequest] = []
    var resumed: [HTTPRequest] = []
    var closers: [CheckedContinuation<Void, Never>] = []
  }

  /// How many connections are kept when they are idle.
  private static let idleConnectionLimit = 8
  /// How long to wait after libcurl failed as a whole, so that the thread does not spin.
  private static let failurePause: UInt32 = 100_000
  private static let isLibraryReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

  private let tls: TLSFiles
  private let connectLimit: Duration
  private let orders: Mutex<Orders>

  /// - Throws: `internalError` if there is no memory or no thread left.
  init(_ tls: TLSFiles, connectLimit: Duration) throws(InstarError) {
    self.tls = tls
    self.connectLimit = connectLimit
    guard Self.isLibraryReady, let handle = curl_multi_init() else {
      throw InstarError(.internalError, "cannot start libcurl", cause: "no memory is left")
    }
    let multi = Multi(handle: handle)
    orders = Mutex(Orders(multi: multi))
    instar_curl_set_limit(handle, CURLMOPT_MAXCONNECTS, Self.idleConnectionLimit)
    let number = start(multi)
    guard number == 0 else {
      curl_multi_cleanup(handle)
      throw .systemFailure("cannot start the thread for requests to etcd", number)
    }
  }

  /// Starts the thread. Returns 0, or an `errno`.
  private func start(_ multi: Multi) -> Int32 {
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    defer { pthread_attr_destroy(&attributes) }
    pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    pthread_attr_setstacksize(&attributes, 1 << 20)
    let work = Unmanaged.passRetained(Work(thread: self, multi: multi))
    var thread = pthread_t()
    let number = pthread_create(
      &thread, &attributes,
      { context in
        guard let context else { return nil }
        let work = Unmanaged<Work>.fromOpaque(context).takeRetainedValue()
        work.thread.run(work.multi.handle)
        return nil
      }, work.toOpaque())
    if number != 0 { work.release() }
    return number
  }

  private final class Work: Sendable {
    let thread: HTTPThread
    let multi: Multi

    init(thread: HTTPThread, multi: Multi) {
      self.thread = thread
      self.multi = multi
    }
  }

  // MARK: Orders of other threads

  /// Makes a request, or ends it if the client is closed.
  func add(_ request: HTTPRequest) {
    if !order({ $0.added.append(request) }) { request.finish(.failure(.closed)) }
  }

  /// Ends the transfer of a request that has ended.
  func remove(_ request: HTTPRequest) { order { $0.removed.append(request) } }

  /// Reads further bytes of an answer that was paused.
  func resume(_ request: HTTPRequest) { order { $0.resumed.append(request) } }

  /// Ends all requests, and returns when all connections are closed and the thread has ended.
  func close() async {
    await withCheckedContinuation { continuation in
      let hasEnded = orders.withLock { orders in
        guard !orders.hasEnded else { return true }
        orders.isClosing = true
        orders.closers.append(continuation)
        if let multi = orders.multi { curl_multi_wakeup(multi.handle) }
        return false
      }
      if hasEnded { continuation.resume() }
    }
  }

  /// Begins what `close` does.
  func beginClosing() { order { $0.isClosing = true } }

  /// - Returns: `false` where the thread follows no more orders.
  @discardableResult
  private func order(_ change: (inout Orders) -> Void) -> Bool {
    orders.withLock { orders in
      guard let multi = orders.multi, !orders.isClosing else { return false }
      change(&orders)
      // It fails only without memory or for a wrong handle. Then the order is followed when the thread next wakes up.
      curl_multi_wakeup(multi.handle)
      return true
    }
  }

  // MARK: The thread

  private func run(_ multi: UnsafeMutableRawPointer) {
    Thread.current.name = "instar-http"
    // Signals are for other threads. Above all SIGPIPE, which OpenSSL may raise: it then stays pending here for good.
    var signals = sigset_t()
    sigfillset(&signals)
    pthread_sigmask(SIG_SETMASK, &signals, nil)

    var transfers: [ObjectIdentifier: HTTPTransfer] = [:]
    while follow(multi, &transfers) {
      var count: Int32 = 0
      var isWell = check(curl_multi_perform(multi, &count), multi, &transfers)
      finish(multi, &transfers)
      // Orders and the limits of transfers end the wait early.
      isWell = isWell && check(curl_multi_poll(multi, nil, 0, 3_600_000, nil), multi, &transfers)
      if !isWell { usleep(Self.failurePause) }
    }

    endAll(.closed, multi, &transfers)
    let unmade = orders.withLock { orders in
      orders.multi = nil
      // A request holds this object, so no order may stay.
      defer { (orders.added, orders.removed, orders.resumed) = ([], [], []) }
      return orders.added
    }
    for request in unmade { request.finish(.failure(.closed)) }
    curl_multi_cleanup(multi)
    let closers = orders.withLock { orders in
      orders.hasEnded = true
      defer { orders.closers = [] }
      return orders.closers
    }
    for closer in closers { closer.resume() }
  }

  /// Follows the orders. Returns `false` when the thread has to end.
  private func follow(
    _ multi: UnsafeMutableRawPointer, _ transfers: inout [ObjectIdentifier: HTTPTransfer]
  ) -> Bool {
    let (added, removed, resumed, isClosing) = orders.withLock { orders in
      if orders.isClosing { return ([HTTPRequest](), [HTTPRequest](), [HTTPRequest](), true) }
      defer { (orders.added, orders.removed, orders.resumed) = ([], [], []) }
      return (orders.added, orders.removed, orders.resumed, false)
    }
    for request in added where !request.hasEnded {
      do throws(HTTPFailure) {
        transfers[ObjectIdentifier(request)] = try HTTPTransfer(
          request, tls, connectLimit: connectLimit, in: multi)
      } catch {
        request.finish(.failure(error))
      }
    }
    for request in removed {
      transfers.removeValue(forKey: ObjectIdentifier(request))?.end(in: multi)
    }
    for request in resumed {
      guard let transfer = transfers[ObjectIdentifier(request)] else { continue }
      do throws(HTTPFailure) {
        try transfer.resume()
      } catch {
        request.finish(.failure(error))
        transfers.removeValue(forKey: ObjectIdentifier(request))?.end(in: multi)
      }
    }
    return !isClosing
  }

  /// Ends the transfers that are over.
  private func finish(
    _ multi: UnsafeMutableRawPointer, _ transfers: inout [ObjectIdentifier: HTTPTransfer]
  ) {
    var left: Int32 = 0
    while let message = curl_multi_info_read(multi, &left) {
      guard message.pointee.msg == CURLMSG_DONE,
        let transfer = HTTPTransfer.of(message.pointee.easy_handle)
      else { continue }
      // The message is gone once its transfer is removed.
      transfer.finish(message.pointee.data.result)
      transfers.removeValue(forKey: ObjectIdentifier(transfer.request))?.end(in: multi)
    }
  }

  /// Ends all transfers where libcurl failed as a whole. Returns whether it did not.
  private func check(
    _ code: CURLMcode, _ multi: UnsafeMutableRawPointer,
    _ transfers: inout [ObjectIdentifier: HTTPTransfer]
  ) -> Bool {
    guard code != CURLM_OK else { return true }
    endAll(.other(String(cString: curl_multi_strerror(code))), multi, &transfers)
    return false
  }

  private func endAll(
    _ failure: HTTPFailure, _ multi: UnsafeMutableRawPointer,
    _ transfers: inout [ObjectIdentifier: HTTPTransfer]
  ) {
    for transfer in transfers.values {
      transfer.request.finish(.failure(failure))
      transfer.end(in: multi)
    }
    transfers = [:]
  }
}
