import Glibc
import InstarTestSupport
import Testing

@testable import InstarLinux

@Suite("MountWatch")
struct MountWatchTests {
  @Test(
    "a mount and an unmount are told, and the list has the mount while it is there",
    .enabled(if: geteuid() == 0, "mounting needs root"))
  func changes() async throws {
    let folder = try TemporaryFolder(mode: 0o700)
    let (changes, continuation) = AsyncStream.makeStream(of: Void.self)
    let watch = try #require(MountWatch { continuation.yield() })
    defer { watch.close() }
    let place = try #require(realpath(folder.path, nil).map { String(cString: $0) })
    func isThere() -> Bool { MountWatch.mounts().contains { $0.path == place } }
    #expect(!isThere())
    var iterator = changes.makeAsyncIterator()
    try #require(mount("tmpfs", place, "tmpfs", 0, nil) == 0)
    defer { umount2(place, Int32(MNT_DETACH)) }
    await iterator.next()
    #expect(isThere())
    try #require(umount2(place, 0) == 0)
    await iterator.next()
    #expect(!isThere())
  }

  @Test("a path belongs to the mount that is nearest above it")
  func mountOfPath() {
    let mounts = ["/", "/srv", "/srv/a", "/srv"].enumerated().map {
      MountWatch.Mount(number: $0, path: $1)
    }
    func number(_ path: String) -> Int? { mounts.mount(of: path).map(\.number) }
    #expect(number("/") == 0)
    #expect(number("/srvb/x") == 0)
    #expect(number("/srv") == 3)
    #expect(number("/srv/b") == 3)
    #expect(number("/srv/a/b") == 2)
    #expect(mounts.mount(of: "srv") == nil)
  }

  @Test("blanks and backslashes in a path are read as the kernel writes them")
  func escapes() {
    #expect(MountWatch.unescaped(#"/mnt/a\040b\134c"#) == #"/mnt/a b\c"#)
    #expect(MountWatch.unescaped(#"/mnt/\04"#) == #"/mnt/\04"#)
  }
}
