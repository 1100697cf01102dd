import Foundation
public import InstarConfiguration
public import InstarSchema
internal import Synchronization

/// A client of an etcd cluster, through the JSON gateway that each member has.
///
/// Each call tries one member after the other, beginning with the one that answered last, and each for `patience`: a
/// member that has lost the others does not answer. So a call ends within `patience` times the number of members. Reads
/// are linearizable: they return what the majority of members has agreed on.
///
/// A call that was sent and not answered may have had its effect. Transactions are safe to repeat, because they have
/// conditions that their own effect makes false.
public final class EtcdClient: Sendable {
  /// How long to wait for the answer of one member.
  static let patience = Duration.seconds(2)
  /// The longest answer that is read.
  private static let answerLimitBytes = 64 << 20
  /// The most operations that etcd takes in one transaction (its `--max-txn-ops`).
  static let operationLimit = 128

  private let endpoints: [String]
  private let http: HTTPClient
  /// The endpoint that answered last.
  private let preferred = Mutex(0)

  /// - Throws: `invalidConfiguration` where a certificate or the key cannot be read; `internalError` if the machine has
  ///   no memory or thread left.
  public init(_ settings: CoordinatorSettings) throws(InstarError) {
    endpoints = settings.endpoints
    let tls = TLSFiles(
      authority: settings.authority, certificate: settings.certificate, key: settings.key)
    try tls.check()
    http = try HTTPClient(tls, connectLimit: Self.patience)
  }

  /// Closes all connections, and returns when they are closed. Requests and watches in progress end.
  public func close() async { await http.close() }

  // MARK: Keys

  /// Reads the entry of a key; `nil` if there is none.
  func entry(_ key: String) async throws(InstarError) -> EtcdEntry? {
    try await range(EtcdMessage.RangeRequest(key: Data(key.utf8))).entries.first
  }

  /// Reads all entries whose keys begin with a text.
  ///
  /// - Parameters:
  ///   - since: Only entries that were written at this revision or later.
  ///   - keysOnly: Whether the values are left out.
  ///   - limit: The most entries that etcd returns at a time. All calls read the same revision.
  func entries(
    below prefix: String, since revision: Int64? = nil, keysOnly: Bool = false, limit: Int = 2000
  ) async throws(InstarError) -> EtcdRange {
    var request = EtcdMessage.RangeRequest(
      key: Data(prefix.utf8), range_end: Self.end(ofPrefix: prefix),
      limit: EtcdMessage.Number(Int64(limit)))
    if keysOnly { request.keys_only = true }
    request.min_mod_revision = revision.map(EtcdMessage.Number.init)
    var all = try await range(request)
    // With a least revision, etcd applies the limit to what is left: fewer than the limit is all.
    var last = all.entries
    while last.count == limit, let key = last.last?.key {
      request.key = Data(key.utf8) + [0]
      request.revision = EtcdMessage.Number(all.revision)
      last = try await range(request).entries
      all.entries += last
    }
    return all
  }

  /// Counts the keys that begin with a text.
  func count(below prefix: String) async throws(InstarError) -> Int {
    try await range(
      EtcdMessage.RangeRequest(
        key: Data(prefix.utf8), range_end: Self.end(ofPrefix: prefix), count_only: true)
    ).count
  }

  private func range(_ request: EtcdMessage.RangeRequest) async throws(InstarError) -> EtcdRange {
    let response: EtcdMessage.RangeResponse = try await call("kv/range", request)
    return EtcdRange(
      entries: (response.kvs ?? []).map {
        EtcdEntry(
          key: String(decoding: $0.key, as: UTF8.self), value: $0.value ?? Data(),
          modified: $0.mod_revision?.value ?? 0, lease: $0.lease?.value ?? 0)
      },
      count: Int(response.count?.value ?? 0), revision: response.header?.revision?.value ?? 0)
  }

  /// Makes all changes at once if all conditions hold, and none otherwise.
  ///
  /// - Returns: the revision of the changes; `nil` if a condition does not hold.
  @discardableResult
  func transaction(
    if conditions: [EtcdCondition], _ changes: [EtcdChange]
  ) async throws(InstarError) -> Int64? {
    let request = EtcdMessage.TransactionRequest(
      compare: conditions.map(Self.compare), success: changes.map(Self.operation))
    let response: EtcdMessage.TransactionResponse = try await call("kv/txn", request)
    return response.succeeded == true ? response.header?.revision?.value ?? 0 : nil
  }

  private static func compare(_ condition: EtcdCondition) -> EtcdMessage.Compare {
    switch condition {
    case .isAbsent(let key):
      EtcdMessage.Compare(
        key: Data(key.utf8), target: "VERSION", version: EtcdMessage.Number(0))
    case .exists(let key):
      EtcdMessage.Compare(
        key: Data(key.utf8), target: "VERSION", result: "GREATER", version: EtcdMessage.Number(0))
    case .isUnchanged(let key, let revision):
      EtcdMessage.Compare(
        key: Data(key.utf8), target: "MOD", mod_revision: EtcdMessage.Number(revision))
    case .hasLease(let key, let lease):
      EtcdMessage.Compare(
        key: Data(key.utf8), target: "LEASE", lease: EtcdMessage.Number(lease))
    }
  }

  private static func operation(_ change: EtcdChange) -> EtcdMessage.Operation {
    switch change {
    case .put(let key, let value, let lease):
      EtcdMessage.Operation(
        request_put: EtcdMessage.PutRequest(
          key: Data(key.utf8), value: value, lease: lease.map(EtcdMessage.Number.init)))
    case .delete(let key):
      EtcdMessage.Operation(request_delete_range: EtcdMessage.DeleteRequest(key: Data(key.utf8)))
    case .deleteAll(let prefix):
      EtcdMessage.Operation(
        request_delete_range: EtcdMessage.DeleteRequest(
          key: Data(prefix.utf8), range_end: end(ofPrefix: prefix)))
    }
  }

  /// The first key after all that begin with a text: etcd's form of a prefix.
  private static func end(ofPrefix prefix: String) -> Data {
    var bytes = Array(prefix.utf8)
    while let last = bytes.popLast() {
      if last < 0xFF { return Data(bytes + [last + 1]) }
    }
    // No key is greater than all keys.
    return Data([0])
  }

  // MARK: Leases

  /// Makes a lease, which ends so many seconds after its last renewal. etcd may give more seconds than were asked for.
  ///
  /// - Returns: the number of the lease.
  func grantLease(seconds: Int64) async throws(InstarError) -> Int64 {
    let request = EtcdMessage.Lease(TTL: EtcdMessage.Number(seconds))
    let response: EtcdMessage.Lease = try await call("lease/grant", request)
    guard let lease = response.ID?.value else {
      throw Self.failure("etcd made a lease without a number")
    }
    return lease
  }

  /// Renews a lease.
  ///
  /// - Returns: the seconds that it has left; `nil` if it has ended.
  func renewLease(_ lease: Int64) async throws(InstarError) -> Int64? {
    let request = EtcdMessage.Lease(ID: EtcdMessage.Number(lease))
    let response: EtcdMessage.Streamed<EtcdMessage.Lease> = try await call(
      "lease/keepalive", request)
    guard let seconds = response.result?.TTL?.value, seconds > 0 else { return nil }
    return seconds
  }

  /// Ends a lease, and deletes all keys with it.
  func revokeLease(_ lease: Int64) async throws(InstarError) {
    let request = EtcdMessage.Lease(ID: EtcdMessage.Number(lease))
    let _: EtcdMessage.Nothing = try await call("lease/revoke", request)
  }

  // MARK: Watches

  /// Calls `onChange` after each change below a prefix, until etcd ends the watch, `limit` has passed, or the task is
  /// cancelled.
  ///
  /// The caller reads the keys itself, once before each watch: a watch only says that it is time to.
  func watch(
    below prefix: String, from revision: Int64, limit: Duration,
    onChange: @Sendable () async -> Void
  ) async throws(InstarError) {
    let creation = EtcdMessage.WatchCreation(
      key: Data(prefix.utf8), range_end: Self.end(ofPrefix: prefix),
      start_revision: EtcdMessage.Number(revision))
    let endpoint = endpoints[preferred.withLock { $0 }]
    do {
      try await post(
        "watch", EtcdMessage.WatchRequest(create_request: creation), to: endpoint, limit: limit
      ) { request in
        let status = try await request.status()
        guard status == 200 else { throw try await Self.failure(request, status) }
        var line = Data()
        while let bytes = try await request.next() {
          line += bytes
          while let end = line.firstIndex(of: UInt8(ascii: "\n")) {
            let message: EtcdMessage.Streamed<EtcdMessage.WatchResponse> = try Self.decoded(
              line[..<end])
            line = Data(line[line.index(after: end)...])
            guard let result = message.result, result.canceled != true else { return }
            if result.events?.isEmpty == false { await onChange() }
          }
          try Self.checkLength(line)
        }
      }
    } catch HTTPFailure.canceled, HTTPFailure.timedOut(isConnected: true) {
      return
    } catch let error as InstarError {
      throw error
    } catch {
      throw Self.unreachable([(endpoint, Self.cause(error, of: endpoint))])
    }
  }

  // MARK: Calls

  private func call<Response: Decodable>(
    _ path: String, _ body: some Encodable
  ) async throws(InstarError) -> Response {
    let first = preferred.withLock { $0 }
    var failures: [(String, String)] = []
    for offset in endpoints.indices {
      let place = (first + offset) % endpoints.count
      let endpoint = endpoints[place]
      do {
        let answer: Response = try await send(path, body, to: endpoint)
        preferred.withLock { $0 = place }
        return answer
      } catch let error as InstarError {
        throw error
      } catch {
        failures.append((endpoint, Self.cause(error, of: endpoint)))
      }
    }
    // Another member may answer the next call, even if none answers now.
    preferred.withLock { $0 = (first + 1) % endpoints.count }
    throw Self.unreachable(failures)
  }

  /// Why one member cannot answer, while another one may.
  private struct MemberFailure: Error {
    var cause: String
  }

  private func send<Response: Decodable>(
    _ path: String, _ body: some Encodable, to endpoint: String
  ) async throws -> Response {
    try await post(path, body, to: endpoint, limit: Self.patience) { request in
      let status = try await request.status()
      guard status == 200 else { throw try await Self.failure(request, status) }
      return try Self.decoded(try await Self.wholeAnswer(request))
    }
  }

  private func post<Value>(
    _ path: String, _ body: some Encodable, to endpoint: String, limit: Duration,
    read: (HTTPRequest) async throws -> Value
  ) async throws -> Value {
    try await http.post(
      "\(endpoint)/v3/\(path)", try JSONEncoder().encode(body), limit: limit, read: read)
  }

  private static func wholeAnswer(_ request: HTTPRequest) async throws -> Data {
    var answer = Data()
    while let bytes = try await request.next() {
      answer += bytes
      try checkLength(answer)
    }
    return answer
  }

  private static func checkLength(_ answer: Data) throws(MemberFailure) {
    guard answer.count <= answerLimitBytes else {
      throw MemberFailure(cause: "the answer is longer than \(answerLimitBytes >> 20) MiB")
    }
  }

  private static func decoded<Value: Decodable>(_ answer: Data) throws(MemberFailure) -> Value {
    do {
      return try JSONDecoder().decode(Value.self, from: answer)
    } catch {
      throw MemberFailure(cause: "the answer is not a valid answer of etcd")
    }
  }

  /// What an answer with another status than 200 says: of the one member, or of etcd.
  private static func failure(_ request: HTTPRequest, _ status: Int) async throws -> any Error {
    let answer = try await wholeAnswer(request)
    // Where the answer is not etcd's, as that of a proxy, the status is all that is known.
    let failure = try? JSONDecoder().decode(EtcdMessage.Failure.self, from: answer)
    let text = failure?.text ?? "HTTP status \(status)"
    // Unavailable and DeadlineExceeded: the member has lost the leader, or is stopping.
    guard let code = failure?.grpc_code ?? failure?.code, ![4, 14].contains(code) else {
      return MemberFailure(cause: text)
    }
    // A lease that has ended is not found (5): that is an answer.
    return Self.failure(text)
  }

  private static func cause(_ error: any Error, of endpoint: String) -> String {
    switch error {
    case let failure as MemberFailure: failure.cause
    case let failure as HTTPFailure: cause(failure, of: endpoint)
    default: "\(error)"
    }
  }

  private static func cause(_ failure: HTTPFailure, of endpoint: String) -> String {
    switch failure {
    case .canceled: "the request was canceled"
    case .closed: "the client was closed"
    case .timedOut: "no answer within \(patience.components.seconds) s"
    case .hostWithoutAddress:
      "the name '\(URLComponents(string: endpoint)?.host ?? endpoint)' has no address"
    case .system(let number): String(cString: strerror(number))
    case .certificateOfOtherHost: "etcd's certificate is for another host"
    case .handshakeEnded: "etcd does not use TLS, or ended the handshake"
    case .tls(let reason):
      "TLS failed; the certificate of etcd or of this host is not accepted (\(reason))"
    case .closedConnection(let hasAnswer):
      hasAnswer
        ? "etcd closed the connection before the end of its answer"
        : "etcd closed the connection without an answer"
    case .other(let text): text
    }
  }

  private static func unreachable(_ failures: [(endpoint: String, cause: String)]) -> InstarError {
    InstarError(
      .coordinationFailed, "cannot reach etcd",
      cause: failures.map { "\($0.endpoint): \($0.cause)" }.joined(separator: "; "),
      next: "to see whether etcd is healthy, run on a member of etcd, with its certificates "
        + "(ETCDCTL_CACERT, ETCDCTL_CERT, ETCDCTL_KEY): etcdctl endpoint health --cluster")
  }

  private static func failure(_ cause: String) -> InstarError {
    InstarError(
      .coordinationFailed, "etcd refused a request", cause: cause,
      next: "to see the reason, read the log of etcd")
  }
}
