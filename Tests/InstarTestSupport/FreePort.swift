import Foundation
import InstarSchema
import Synchronization

/// Ports of the loopback interface at which nobody listens.
public enum FreePort {
  /// The ports that were returned. The kernel may choose one again until somebody listens there.
  private static let returned = Mutex<Set<UInt16>>([])

  /// Returns a port that the kernel has just chosen, another one each time. Another process may take it before the
  /// caller does.
  public static func any() throws -> UInt16 {
    while true {
      let port = try chosen()
      if returned.withLock({ $0.insert(port).inserted }) { return port }
    }
  }

  private static func chosen() throws -> UInt16 {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, size) == 0 && getsockname(descriptor, $0, &size) == 0
      }
    }
    guard isBound else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EADDRNOTAVAIL) }
    return UInt16(bigEndian: address.sin_port)
  }
}
