import CSystemd
import Glibc

/// A listening socket that the service manager made and passed to this process (sd_listen_fds(3)).
public struct PassedSocket: Sendable, Hashable {
  /// `FileDescriptorName=` of its unit; the name of the unit, if that says nothing.
  public var name: String
  /// Close-on-exec, and now this process's to close.
  public var descriptor: Int32

  /// Takes over the listening stream sockets in the file system that were passed to this process, in their order. The
  /// variables that announce them are removed from the environment, so no child takes its descriptors for them. Other
  /// descriptors that were passed are closed.
  ///
  /// The first call takes all. It changes the environment, so it comes before any second thread that reads it.
  public static func takeAll() -> [PassedSocket] {
    var names: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
    let count = sd_listen_fds_with_names(1, &names)
    // Negative: the variables are malformed, so nothing is known about any descriptor.
    guard count > 0, let names else { return [] }
    defer { free(names) }
    var sockets: [PassedSocket] = []
    for place in 0..<Int(count) {
      let name = names[place].map { String(cString: $0) } ?? ""
      free(names[place])
      let descriptor = firstDescriptor + Int32(place)
      if sd_is_socket_unix(descriptor, Int32(SOCK_STREAM.rawValue), 1, nil, 0) > 0 {
        sockets.append(PassedSocket(name: name, descriptor: descriptor))
      } else {
        close(descriptor)
      }
    }
    return sockets
  }

  /// `SD_LISTEN_FDS_START`
  private static let firstDescriptor: Int32 = 3
}
