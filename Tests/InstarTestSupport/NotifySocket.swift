import Foundation
import Glibc
import Testing

/// Where a service manager listens: a datagram socket.
package final class NotifySocket: Sendable {
  /// The value of `NOTIFY_SOCKET`.
  package let path: String
  private let descriptor: Int32

  package init(in folder: String) throws {
    path = folder + "/notify"
    descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    try #require(bytes.count < MemoryLayout.size(ofValue: address.sun_path))
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    let bound = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    try #require(bound == 0)
  }

  deinit { close(descriptor) }

  /// Waits for a message that holds the text, and returns it; `nil` after `soon()`.
  package func wait(for text: String) -> String? {
    let deadline = soon()
    while ContinuousClock.now < deadline {
      var interest = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      guard poll(&interest, 1, 100) > 0 else { continue }
      var buffer = [UInt8](repeating: 0, count: 4096)
      let count = recv(descriptor, &buffer, buffer.count, 0)
      guard count > 0 else { continue }
      let message = String(decoding: buffer[..<count], as: UTF8.self)
      if message.contains(text) { return message }
    }
    return nil
  }
}
