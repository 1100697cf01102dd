import Foundation
import InstarConfiguration
import InstarSchema
import InstarTestSupport

@testable import InstarCoordinator

/// A real etcd with one member and an empty data folder, on ports of its own. It ends with this value.
final class EtcdProcess {
  let folder = try? TemporaryFolder()
  let port: UInt16
  let endpoint: String
  private var process = Process()
  private let arguments: [String]

  /// - Parameters:
  ///   - certificate: The files with the certificate and the key with which it uses TLS; `nil` for none.
  ///   - authority: The certificate of the authority of its clients; `nil` to admit all.
  init(certificate: (certificate: String, key: String)? = nil, authority: String? = nil) throws {
    port = try FreePort.any()
    let client = "\(certificate == nil ? "http" : "https")://127.0.0.1:\(port)"
    let peer = "http://127.0.0.1:\(try FreePort.any())"
    endpoint = client
    let data = (folder?.path ?? NSTemporaryDirectory()) + "/etcd"
    let tls = certificate.map { ["--cert-file", $0.certificate, "--key-file", $0.key] } ?? []
    let clients = authority.map { ["--client-cert-auth", "--trusted-ca-file", $0] } ?? []
    arguments =
      tls + clients + [
        "--name", "one", "--data-dir", data, "--listen-client-urls", client,
        "--advertise-client-urls", client, "--listen-peer-urls", peer,
        "--initial-advertise-peer-urls", peer, "--initial-cluster", "one=\(peer)",
        "--log-level", "error",
        // A slow disk would exceed the patience of requests. A killed process loses nothing: the kernel has its writes.
        "--unsafe-no-fsync",
      ]
    try start()
  }

  /// Starts it, again after `kill`, with the data that it had.
  func start() throws {
    process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/etcd")
    process.arguments = arguments
    process.standardError = FileHandle.nullDevice
    try process.run()
  }

  func kill() {
    guard process.isRunning else { return }
    Foundation.kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  /// The numbers of all leases, as etcd's own command lists them.
  func leases() throws -> [Int64] {
    let list = Process()
    let output = Pipe()
    list.executableURL = URL(fileURLWithPath: "/usr/bin/etcdctl")
    list.arguments = ["--endpoints", endpoint, "lease", "list"]
    list.environment = ["ETCDCTL_API": "3"]
    list.standardOutput = output
    try list.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    list.waitUntilExit()
    // The first line says how many there are.
    return text.split(separator: "\n").dropFirst().compactMap { Int64($0, radix: 16) }
  }

  /// Waits until a request is answered: a member that has just started has no leader.
  func waitUntilReady(_ client: EtcdClient) async throws {
    let deadline = soon()
    while true {
      do throws(InstarError) {
        _ = try await client.entry("/ready")
        return
      } catch {
        guard .now < deadline else { throw error }
        try await Task.sleep(for: .milliseconds(50))
      }
    }
  }

  var settings: CoordinatorSettings {
    var settings = CoordinatorSettings()
    settings.endpoints = [endpoint]
    // Longer than any test takes on a busy machine.
    settings.lease = .seconds(60)
    return settings
  }

  deinit { kill() }
}
