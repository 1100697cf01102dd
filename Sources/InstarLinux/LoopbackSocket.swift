import Glibc
public import InstarSchema

/// Stream sockets on the loopback interface (tcp(7)): only this machine can connect.
public enum LoopbackSocket {
  private static let backlog: Int32 = 64

  /// Returns the numeric address of a host on the loopback interface: of "localhost", "127.0.0.1" and others of its
  /// network, "::1" and "[::1]".
  ///
  /// - Returns: `nil` for any other host. Names are not looked up.
  public static func numericHost(_ host: String) -> String? {
    if host == "localhost" { return "127.0.0.1" }
    if host == "::1" || host == "[::1]" { return "::1" }
    var address = in_addr()
    guard host.hasPrefix("127."), inet_pton(AF_INET, host, &address) == 1 else { return nil }
    return host
  }

  /// Listens on a port.
  ///
  /// - Parameter host: As `numericHost` returns it.
  /// - Returns: A descriptor, which does not block and is close-on-exec.
  /// - Throws: `metricsFailed` if another process listens there, or the process may not use the network.
  public static func listen(host: String, port: UInt16) throws(InstarError) -> Int32 {
    let what = "cannot listen at '\(host):\(port)'"
    func failure(_ reason: Int32) -> InstarError {
      let isHidden = [EAFNOSUPPORT, EADDRNOTAVAIL].contains(reason)
      return InstarError(
        .metricsFailed, what, cause: String(cString: strerror(reason)),
        next: isHidden
          ? "give the service the loopback interface: instarctl config apply; then run: systemctl restart instard"
          : "name another port in 'metrics', then run: systemctl reload instard")
    }
    let isVersion6 = host.contains(":")
    let descriptor = socket(
      isVersion6 ? AF_INET6 : AF_INET,
      Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        | Int32(SOCK_NONBLOCK.rawValue), 0)
    guard descriptor >= 0 else { throw failure(errno) }
    // A port that an earlier daemon used a moment ago.
    var isOn: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &isOn, socklen_t(MemoryLayout<Int32>.size))
    let isBound =
      isVersion6 ? bindVersion6(descriptor, host, port) : bindVersion4(descriptor, host, port)
    guard isBound, Glibc.listen(descriptor, backlog) == 0 else {
      let reason = errno
      close(descriptor)
      throw failure(reason)
    }
    return descriptor
  }

  private static func bindVersion4(_ descriptor: Int32, _ host: String, _ port: UInt16) -> Bool {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    guard inet_pton(AF_INET, host, &address.sin_addr) == 1 else { return false }
    return bind(descriptor, to: address)
  }

  private static func bindVersion6(_ descriptor: Int32, _ host: String, _ port: UInt16) -> Bool {
    var address = sockaddr_in6()
    address.sin6_family = sa_family_t(AF_INET6)
    address.sin6_port = port.bigEndian
    guard inet_pton(AF_INET6, host, &address.sin6_addr) == 1 else { return false }
    return bind(descriptor, to: address)
  }

  private static func bind<Address>(_ descriptor: Int32, to address: Address) -> Bool {
    withUnsafePointer(to: address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Glibc.bind(descriptor, $0, socklen_t(MemoryLayout<Address>.size)) == 0
      }
    }
  }
}
