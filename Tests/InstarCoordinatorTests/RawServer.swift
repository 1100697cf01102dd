import Foundation
import InstarLinux
import InstarTestSupport
import Synchronization

/// A server on a port of its own that answers each connection as a test wants, also wrongly. It ends with this value.
final class RawServer: Sendable {
  let port: UInt16
  var endpoint: String { "http://127.0.0.1:\(port)" }
  private let descriptor: Int32

  /// - Parameter serve: Runs on a thread of its own for each connection, which is closed afterwards. It gets the
  ///   descriptor after the request has arrived.
  init(_ serve: @escaping @Sendable (Int32) -> Void) throws {
    port = try FreePort.any()
    descriptor = try LoopbackSocket.listen(host: "127.0.0.1", port: port)
    _ = fcntl(descriptor, F_SETFL, 0)
    Thread.detachNewThread { [descriptor] in
      while true {
        let connection = accept(descriptor, nil, nil)
        guard connection >= 0 else { break }
        Thread.detachNewThread {
          var request = [UInt8](repeating: 0, count: 65_536)
          _ = read(connection, &request, request.count)
          serve(connection)
          close(connection)
        }
      }
      close(descriptor)
    }
  }

  deinit { shutdown(descriptor, Int32(SHUT_RDWR)) }

  /// Sends a text. Returns whether the client took it.
  @discardableResult
  static func send(_ text: String, to connection: Int32) -> Bool {
    let bytes = Array(text.utf8)
    var sent = 0
    while sent < bytes.count {
      let count = bytes[sent...].withUnsafeBytes {
        Foundation.send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return false }
      sent += count
    }
    return true
  }

  /// Waits until the client closes the connection.
  static func awaitEnd(of connection: Int32) {
    var bytes = [UInt8](repeating: 0, count: 1024)
    while read(connection, &bytes, bytes.count) > 0 {}
  }

  /// Whether a program listens at a port.
  static func listens(at port: UInt16) -> Bool {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
  }

  /// How many connections to a port this process has open.
  static func connections(to port: UInt16) -> Int {
    (0..<Int32(1024)).count { descriptor in
      var address = sockaddr_in()
      var size = socklen_t(MemoryLayout<sockaddr_in>.size)
      return withUnsafeMutablePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          getpeername(descriptor, $0, &size) == 0
        }
      } && address.sin_family == sa_family_t(AF_INET) && UInt16(bigEndian: address.sin_port) == port
    }
  }
}
