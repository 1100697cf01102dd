import Glibc
import Synchronization
import Testing

/// A mounted file system that answers nothing, because no program reads its requests.
public final class SilentFileSystem: Sendable {
  private let place: String
  private let requests: Mutex<Int32?>

  public static let canMount = geteuid() == 0 && access("/dev/fuse", R_OK | W_OK) == 0

  /// - Parameter place: A folder, whose content is hidden until `end()`.
  public init(at place: String) throws {
    let requests = open("/dev/fuse", O_RDWR | O_CLOEXEC)
    try #require(requests >= 0)
    self.place = place
    self.requests = Mutex(requests)
    let options = "fd=\(requests),rootmode=40000,user_id=0,group_id=0"
    try #require(options.withCString { mount("silent", place, "fuse", 0, $0) } == 0)
  }

  /// Unmounts it. All its requests fail.
  public func end() {
    guard let requests = requests.withLock({ $0.take() }) else { return }
    umount2(place, Int32(MNT_FORCE | MNT_DETACH))
    close(requests)
  }

  deinit { end() }
}
