import Foundation
import InstarConfiguration
import InstarSchema
import InstarTestSupport
import Synchronization
import Testing

@testable import InstarCoordinator

@Suite("The HTTP client")
struct HTTPClientTests {
  private static func client() throws -> HTTPClient {
    try HTTPClient(TLSFiles(), connectLimit: .seconds(2))
  }

  private static func etcd(at endpoint: String) throws -> EtcdClient {
    var settings = CoordinatorSettings()
    settings.endpoints = [endpoint]
    return try EtcdClient(settings)
  }

  /// Waits until something is true.
  private static func wait(_ isTrue: () throws -> Bool) async throws {
    let deadline = soon()
    while try !isTrue() {
      try #require(.now < deadline)
      try await Task.sleep(for: .milliseconds(10))
    }
  }

  @Test("a server that sends nothing is named when the time limit has passed")
  func silentServer() async throws {
    let server = try RawServer { RawServer.awaitEnd(of: $0) }
    let client = try Self.etcd(at: server.endpoint)
    let began = ContinuousClock.now
    let error = await #expect(throws: InstarError.self) { try await client.entry("/a") }
    #expect(error?.cause == "\(server.endpoint): no answer within 2 s")
    #expect(.now - began >= EtcdClient.patience)
    await client.close()
    #expect(RawServer.connections(to: server.port) == 0)
  }

  @Test(
    "a server that closes the connection early is named, and so is one without an answer of etcd")
  func brokenAnswers() async throws {
    let answers = [
      "": "etcd closed the connection without an answer",
      "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{":
        "etcd closed the connection before the end of its answer",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n{":
        "etcd closed the connection before the end of its answer",
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{\n": "the answer is not a valid answer of etcd",
      "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n":
        "HTTP status 302",
    ]
    for (answer, cause) in answers {
      let server = try RawServer { RawServer.send(answer, to: $0) }
      let client = try Self.etcd(at: server.endpoint)
      let error = await #expect(throws: InstarError.self) { try await client.entry("/a") }
      #expect(error?.cause == "\(server.endpoint): \(cause)")
      let watched = await #expect(throws: InstarError.self) {
        try await client.watch(below: "/a", from: 1, limit: .seconds(60)) {}
      }
      #expect(watched?.cause == "\(server.endpoint): \(cause)")
      await client.close()
    }
  }

  @Test("an answer that is too long is read no further")
  func longAnswer() async throws {
    let megabyte = String(repeating: "x", count: 1 << 20)
    let sent = Mutex(0)
    let server = try RawServer { connection in
      RawServer.send("HTTP/1.1 200 OK\r\n\r\n", to: connection)
      while RawServer.send(megabyte, to: connection) { sent.withLock { $0 += 1 } }
    }
    let client = try Self.client()
    let read = Mutex(0)
    // As much as etcd's client reads. Its time limit would make a slow machine fail here.
    try await client.post(server.endpoint, Data(), limit: .seconds(120)) { request in
      while read.withLock({ $0 }) <= 64 << 20, let bytes = try await request.next() {
        read.withLock { $0 += bytes.count }
      }
    }
    await client.close()
    #expect(read.withLock { $0 } > 64 << 20)
    // What is on the way beside: the buffers of both sockets, and those of the request.
    #expect(sent.withLock { $0 } < 64 + 16)
  }

  @Test("a server waits for a reader that is slow, and the reader gets all that it sends")
  func slowReader() async throws {
    let megabyte = String(repeating: "x", count: 1 << 20)
    let sent = Mutex(0)
    let server = try RawServer { connection in
      RawServer.send("HTTP/1.1 200 OK\r\nContent-Length: \(32 << 20)\r\n\r\n", to: connection)
      for _ in 1...32 where RawServer.send(megabyte, to: connection) { sent.withLock { $0 += 1 } }
      RawServer.awaitEnd(of: connection)
    }
    let client = try Self.client()
    let count = try await client.post(server.endpoint, Data(), limit: .seconds(120)) { request in
      var count = try await request.next()?.count ?? 0
      try await Task.sleep(for: .seconds(1))
      #expect(sent.withLock { $0 } < 16)
      while let bytes = try await request.next() { count += bytes.count }
      return count
    }
    #expect(count == 32 << 20)
    await client.close()
  }

  @Test("a request ends with its task, also if the server sends nothing")
  func canceledTask() async throws {
    let server = try RawServer { RawServer.awaitEnd(of: $0) }
    let client = try Self.client()
    let task = Task {
      try await client.post(server.endpoint, Data(), limit: .seconds(600)) { try await $0.next() }
    }
    try await Self.wait { RawServer.connections(to: server.port) == 1 }
    task.cancel()
    await #expect(throws: HTTPFailure.canceled) { try await task.value }
    try await Self.wait { RawServer.connections(to: server.port) == 0 }
    await client.close()
  }

  @Test("a request that is canceled before it begins makes no connection")
  func canceledBefore() async throws {
    let client = try Self.client()
    let task = Task {
      while !Task.isCancelled { await Task.yield() }
      return try await client.post("http://127.0.0.1:1", Data(), limit: .seconds(600)) {
        try await $0.next()
      }
    }
    task.cancel()
    await #expect(throws: HTTPFailure.canceled) { try await task.value }
    await client.close()
  }

  @Test("closing the HTTP client ends the requests in progress, and later ones fail at once")
  func closing() async throws {
    let server = try RawServer { RawServer.awaitEnd(of: $0) }
    let client = try Self.client()
    let task = Task {
      try await client.post(server.endpoint, Data(), limit: .seconds(600)) { try await $0.next() }
    }
    try await Self.wait { RawServer.connections(to: server.port) == 1 }
    await client.close()
    #expect(RawServer.connections(to: server.port) == 0)
    await #expect(throws: HTTPFailure.closed) { try await task.value }
    await #expect(throws: HTTPFailure.closed) {
      try await client.post(server.endpoint, Data(), limit: .seconds(600)) { try await $0.status() }
    }
    await client.close()
  }

  @Test("a client that is released without being closed ends its thread")
  func released() async throws {
    weak var thread: HTTPThread?
    do {
      let client = try Self.client()
      thread = client.thread
      await #expect(throws: HTTPFailure.system(ECONNREFUSED)) {
        try await client.post("http://127.0.0.1:1", Data(), limit: .seconds(10)) {
          try await $0.status()
        }
      }
    }
    try await Self.wait { thread == nil }
  }

  @Test("only http and https are used")
  func schemes() async throws {
    let client = try Self.client()
    await #expect(throws: HTTPFailure.self) {
      try await client.post("file:///etc/hostname", Data(), limit: .seconds(10)) {
        try await $0.next()
      }
    }
    await client.close()
  }

  @Test("a name without an address is named")
  func unknownName() async throws {
    let client = try Self.etcd(at: "https://nowhere..invalid:2379")
    let error = await #expect(throws: InstarError.self) { try await client.entry("/a") }
    #expect(error?.cause.hasSuffix("the name 'nowhere..invalid' has no address") == true)
    await client.close()
  }

  // MARK: With etcd

  @Test("many requests at once are answered, and few connections stay")
  func manyRequests() async throws {
    let etcd = try EtcdProcess()
    let client = try await EtcdClientTests.client(etcd)
    for round in 1...20 {
      let answers = await withTaskGroup(of: Bool.self) { group in
        for number in 1...50 {
          group.addTask {
            do throws(InstarError) {
              return try await client.transaction(
                if: [], [.put("/\(round)/\(number)", Data())]) != nil
            } catch {
              // etcd, on a busy machine.
              return error.cause.contains("no answer within")
            }
          }
        }
        return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      #expect(answers == 50)
    }
    try await Self.wait { RawServer.connections(to: etcd.port) <= 8 }
    await client.close()
    #expect(RawServer.connections(to: etcd.port) == 0)
  }

  @Test("requests that follow each other use one connection")
  func oneConnection() async throws {
    let etcd = try EtcdProcess()
    let client = try await EtcdClientTests.client(etcd)
    for _ in 1...200 { _ = try await client.entry("/a") }
    #expect(RawServer.connections(to: etcd.port) == 1)
    await client.close()
  }

  @Test("a watch ends with its task and with its client, and so does its connection")
  func endedWatches() async throws {
    let etcd = try EtcdProcess()
    let client = try await EtcdClientTests.client(etcd)
    try await client.transaction(if: [], [.put("/a", Data())])
    func watch() async -> Task<Void, any Error> {
      let (changes, report) = AsyncStream<Void>.makeStream()
      let task = Task {
        try await client.watch(below: "/", from: 1, limit: .seconds(600)) { report.yield() }
      }
      for await _ in changes { break }
      return task
    }
    let canceled = await watch()
    #expect(RawServer.connections(to: etcd.port) == 1)
    canceled.cancel()
    try await canceled.value
    try await Self.wait { RawServer.connections(to: etcd.port) == 0 }

    let closed = await watch()
    #expect(RawServer.connections(to: etcd.port) == 1)
    await client.close()
    let error = await #expect(throws: InstarError.self) { try await closed.value }
    #expect(error?.cause.hasSuffix("the client was closed") == true)
    #expect(RawServer.connections(to: etcd.port) == 0)
  }

  @Test("a watch ends at its limit without an error, and without an answer it is one")
  func watchLimits() async throws {
    let etcd = try EtcdProcess()
    let client = try await EtcdClientTests.client(etcd)
    try await client.watch(below: "/", from: 1, limit: .seconds(1)) {}
    await client.close()
    let refused = try Self.etcd(at: "http://127.0.0.1:1")
    let error = await #expect(throws: InstarError.self) {
      try await refused.watch(below: "/", from: 1, limit: .seconds(1)) {}
    }
    #expect(error?.cause == "http://127.0.0.1:1: Connection refused")
    await refused.close()
  }

  @Test(
    "certificates that are not accepted are named with the reason, and a renewed one needs no restart"
  )
  func certificates() async throws {
    let authority = try TestAuthority()
    let other = try TestAuthority()
    let own = try authority.issue("own", for: "IP:127.0.0.1")
    let foreign = try other.issue("foreign", for: "IP:127.0.0.1")
    let etcd = try EtcdProcess(
      certificate: try authority.issue("server", for: "IP:127.0.0.1"), authority: authority.path)
    var settings = etcd.settings
    settings.authority = authority.path
    (settings.certificate, settings.key) = own
    let client = try EtcdClient(settings)
    try await etcd.waitUntilReady(client)
    await client.close()

    var unknown = settings
    unknown.authority = other.path
    #expect(
      try await Self.cause(unknown)
        == "TLS failed; the certificate of etcd or of this host is not accepted "
        + "(unable to get local issuer certificate)")
    var nobody = settings
    (nobody.certificate, nobody.key) = (nil, nil)
    let refusal = try await Self.cause(nobody)
    // The alert of etcd, or the end of the connection that follows it.
    #expect(
      refusal.hasPrefix("TLS failed; the certificate of etcd or of this host is not accepted (")
        || refusal == String(cString: strerror(ECONNRESET)), "\(refusal)")

    // The same files get another content.
    let renewed = try EtcdClient(settings)
    _ = try await renewed.entry("/a")
    func replace(_ files: (certificate: String, key: String)) throws {
      try Data(contentsOf: URL(fileURLWithPath: files.certificate))
        .write(to: URL(fileURLWithPath: own.certificate), options: .atomic)
      try Data(contentsOf: URL(fileURLWithPath: files.key))
        .write(to: URL(fileURLWithPath: own.key), options: .atomic)
    }
    let kept = try authority.issue("kept", for: "IP:127.0.0.1")
    try replace(foreign)
    _ = try await renewed.entry("/a")
    etcd.kill()
    try etcd.start()
    try await Self.wait { RawServer.listens(at: etcd.port) }
    await #expect(throws: InstarError.self) { try await renewed.entry("/a") }
    try replace(kept)
    try await etcd.waitUntilReady(renewed)
    await renewed.close()
  }

  @Test("a certificate for another host and a server without TLS are named")
  func otherHosts() async throws {
    let authority = try TestAuthority()
    let etcd = try EtcdProcess(
      certificate: try authority.issue("server", for: "DNS:other.example"), authority: nil)
    try await Self.wait { RawServer.listens(at: etcd.port) }
    var settings = etcd.settings
    settings.authority = authority.path
    #expect(try await Self.cause(settings) == "etcd's certificate is for another host")
    settings.endpoints = [etcd.endpoint.replacing("127.0.0.1", with: "localhost")]
    #expect(try await Self.cause(settings) == "etcd's certificate is for another host")

    let answers: [String?] = ["HTTP/1.1 400 Bad Request\r\n\r\n", "", nil]
    for answer in answers {
      let server = try RawServer { connection in
        if let answer {
          RawServer.send(answer, to: connection)
        } else {
          var linger = linger(l_onoff: 1, l_linger: 0)
          setsockopt(
            connection, SOL_SOCKET, SO_LINGER, &linger,
            socklen_t(MemoryLayout.size(ofValue: linger)))
        }
      }
      settings.endpoints = [server.endpoint.replacing("http:", with: "https:")]
      #expect(try await Self.cause(settings) == "etcd does not use TLS, or ended the handshake")
    }
  }

  /// Why a client with these settings cannot reach etcd.
  private static func cause(_ settings: CoordinatorSettings) async throws -> String {
    let client = try EtcdClient(settings)
    let error = await #expect(throws: InstarError.self) { try await client.entry("/a") }
    await client.close()
    let endpoint = try #require(settings.endpoints.first)
    let cause = try #require(error?.cause)
    #expect(cause.hasPrefix(endpoint + ": "))
    return String(cause.dropFirst(endpoint.count + 2))
  }

  @Test("a file without the certificate or key that it must have is named")
  func files() throws {
    let authority = try TestAuthority()
    let own = try authority.issue("own", for: "IP:127.0.0.1")
    let folder = try TemporaryFolder()
    let whole = try String(contentsOfFile: own.certificate, encoding: .utf8)
    let lines = whole.split(separator: "\n")
    let short = try folder.file(
      "short.pem", Data((lines.prefix(4) + lines.suffix(1)).joined(separator: "\n").utf8))
    let encrypted = folder.path("encrypted.key")
    try TestAuthority.openssl(
      ["pkcs8", "-topk8", "-in", own.key, "-out", encrypted, "-passout", "pass:secret"])
    let cases: [(certificate: String, key: String, cause: String)] = [
      (own.certificate, own.certificate, "the file is not in PEM form"),
      (own.key, own.key, "the file is not in PEM form"),
      (short, own.key, "the file is not in PEM form"),
      (folder.path("none"), own.key, "No such file or directory"),
      (folder.path, own.key, "Is a directory"),
      (
        own.certificate, encrypted,
        "the key is encrypted, and instar-coordinator cannot ask for its passphrase"
      ),
    ]
    for (certificate, key, cause) in cases {
      let files = TLSFiles(authority: own.certificate, certificate: certificate, key: key)
      let error = #expect(throws: InstarError.self) { try files.check() }
      #expect(error?.code == .invalidConfiguration)
      #expect(error?.cause == cause)
    }
    try TLSFiles(authority: authority.path, certificate: own.certificate, key: own.key).check()
    // The form that OpenSSL wrote before, with the parameters of the curve.
    let old = folder.path("old.key")
    try TestAuthority.openssl(
      ["ecparam", "-name", "prime256v1", "-genkey", "-out", old])
    try TLSFiles(certificate: own.certificate, key: old).check()
  }
}
