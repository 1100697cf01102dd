import Foundation
import InstarConfiguration
import InstarSchema
import Synchronization
import Testing

@testable import InstarCoordinator

@Suite("The client of etcd")
struct EtcdClientTests {
  /// Waits until etcd answers.
  static func client(_ etcd: EtcdProcess) async throws -> EtcdClient {
    let client = try EtcdClient(etcd.settings)
    try await etcd.waitUntilReady(client)
    return client
  }

  @Test("a transaction writes all its changes if its conditions hold, and none otherwise")
  func transactions() async throws {
    let etcd = try EtcdProcess()
    let client = try await Self.client(etcd)
    let first = try await client.transaction(
      if: [.isAbsent("/a")], [.put("/a", Data("1".utf8)), .put("/ä/b", Data([0, 255]))])
    #expect(first != nil)
    let second = try await client.transaction(
      if: [.isAbsent("/a")], [.put("/a", Data("2".utf8)), .delete("/ä/b")])
    #expect(second == nil)
    let entry = try #require(try await client.entry("/a"))
    #expect(entry.value == Data("1".utf8))
    #expect(entry.modified == first)
    #expect(try await client.entry("/ä/b")?.value == Data([0, 255]))
    let changed = try await client.transaction(
      if: [.isUnchanged("/a", since: entry.modified), .exists("/ä/b")], [.deleteAll("/ä/")])
    #expect(changed != nil)
    #expect(try await client.entry("/ä/b") == nil)
    await client.close()
  }

  @Test("a range has all entries below a prefix, in pieces, also only those that are new")
  func ranges() async throws {
    let etcd = try EtcdProcess()
    let client = try await Self.client(etcd)
    for number in 0..<25 {
      try await client.transaction(if: [], [.put("/r/\(number)", Data("\(number)".utf8))])
    }
    try await client.transaction(if: [], [.put("/s", Data())])
    let all = try await client.entries(below: "/r/", limit: 10)
    #expect(all.entries.count == 25)
    #expect(Set(all.entries.map(\.key)).count == 25)
    try await client.transaction(if: [], [.put("/r/7", Data("new".utf8))])
    let new = try await client.entries(below: "/r/", since: all.revision + 1, limit: 10)
    #expect(new.entries.map(\.key) == ["/r/7"])
    #expect(try await client.count(below: "/r/") == 25)
    let keys = try await client.entries(below: "/r/", keysOnly: true)
    #expect(keys.entries.allSatisfy { $0.value.isEmpty })
    await client.close()
  }

  @Test("a key ends with its lease, and a lease that has ended cannot be renewed")
  func leases() async throws {
    let etcd = try EtcdProcess()
    let client = try await Self.client(etcd)
    let lease = try await client.grantLease(seconds: 60)
    try await client.transaction(if: [], [.put("/l", Data(), lease: lease)])
    #expect(try await client.entry("/l")?.lease == lease)
    #expect(try await client.renewLease(lease) == 60)
    try await client.revokeLease(lease)
    #expect(try await client.entry("/l") == nil)
    #expect(try await client.renewLease(lease) == nil)
    await client.close()
  }

  @Test("a watch reports each change below its prefix, and no other")
  func watches() async throws {
    let etcd = try EtcdProcess()
    let client = try await Self.client(etcd)
    let revision = try await client.entries(below: "/w/").revision
    let count = Mutex(0)
    let (changes, report) = AsyncStream<Void>.makeStream()
    let watch = Task {
      try await client.watch(below: "/w/", from: revision + 1, limit: .seconds(60)) {
        count.withLock { $0 += 1 }
        report.yield()
      }
    }
    var iterator = changes.makeAsyncIterator()
    // After the first report etcd sends each change by itself, in their order.
    try await client.transaction(if: [], [.put("/w/1", Data())])
    _ = await iterator.next()
    for _ in 0..<20 { try await client.transaction(if: [], [.put("/v", Data())]) }
    try await client.transaction(if: [], [.put("/x", Data())])
    try await client.transaction(if: [], [.put("/w/2", Data())])
    _ = await iterator.next()
    #expect(count.withLock { $0 } == 2)
    watch.cancel()
    await client.close()
  }

  @Test("the client of etcd uses the members that answer, and names each one that does not")
  func failover() async throws {
    let etcd = try EtcdProcess()
    var settings = etcd.settings
    let silent = "http://127.0.0.1:1"
    settings.endpoints = [silent] + settings.endpoints
    let client = try EtcdClient(settings)
    try await etcd.waitUntilReady(client)
    try await client.transaction(if: [], [.put("/f", Data())])
    etcd.kill()
    let error = await #expect(throws: InstarError.self) { try await client.entry("/f") }
    #expect(error?.code == .coordinationFailed)
    #expect(error?.cause.contains("\(silent): Connection refused") == true)
    #expect(error?.cause.contains(etcd.endpoint) == true)
    // The same client goes on when etcd does.
    try etcd.start()
    try await etcd.waitUntilReady(client)
    #expect(try await client.entry("/f") != nil)
    await client.close()
  }

  @Test("a member that does not use TLS is named, without the paths of a library")
  func withoutTLS() async throws {
    let etcd = try EtcdProcess()
    let plain = try EtcdClient(etcd.settings)
    try await etcd.waitUntilReady(plain)
    await plain.close()
    var settings = etcd.settings
    let endpoint = etcd.endpoint.replacing("http:", with: "https:")
    settings.endpoints = [endpoint]
    let client = try EtcdClient(settings)
    let error = await #expect(throws: InstarError.self) { try await client.entry("/f") }
    // etcd ends the connection or resets it, as it comes.
    #expect(error?.cause.hasPrefix("\(endpoint): ") == true)
    #expect(error?.cause.contains("OpenSSL") == false)
    await client.close()
  }

  @Test("a file that is not a certificate is named")
  func certificates() throws {
    var settings = CoordinatorSettings()
    settings.endpoints = ["https://127.0.0.1:1"]
    settings.authority = "/etc/hostname"
    let error = #expect(throws: InstarError.self) { _ = try EtcdClient(settings) }
    #expect(error?.code == .invalidConfiguration)
    #expect(error?.what.contains("/etc/hostname") == true)
  }
}
