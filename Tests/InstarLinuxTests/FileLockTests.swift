import Glibc
import InstarLinux
import InstarSchema
import InstarTestSupport
import Testing

@Suite("The kernel's list of locks")
struct FileLockTests {
  @Test("the list has the processes with a lock, and not those that wait for one")
  func text() {
    let text = """
      1: POSIX  ADVISORY  WRITE 4211 fe:01:2868431 1073741824 1073742335
      1: -> POSIX  ADVISORY  WRITE 4300 fe:01:2868431 1073741824 1073742335
      2: FLOCK  ADVISORY  WRITE 4212 fe:01:7 0 EOF
      3: OFDLCK ADVISORY  READ -1 fe:01:8 0 EOF
      4: POSIX  ADVISORY  READ 4211 00:2a:18446744073709551615 128 EOF
      5: POSIX  ADVISORY  READ 0 fe:01:9 0 EOF
      6: POSIX  ADVISORY  READ 4213 fe:01:10 9 3
      nonsense
      """
    #expect(
      FileLock.all(in: text) == [
        FileLock(
          pid: 4211, file: FileIdentity(device: 0xFE01, inode: 2_868_431), isExclusive: true,
          bytes: 1_073_741_824...1_073_742_335),
        FileLock(
          pid: 4211, file: FileIdentity(device: 0x2A, inode: .max), isExclusive: false,
          bytes: 128...(.max)),
      ])
  }

  @Test("the kernel's list of locks names the bytes that a process has locked")
  func lockedBytes() throws {
    let folder = try TemporaryFolder()
    try folder.write("0123456789", to: "file")
    let other = try OtherProcess(
      """
      import fcntl
      file = open(sys.argv[1], "r+")
      fcntl.lockf(file, fcntl.LOCK_EX, 3, 4)
      print("locked", flush=True)
      sys.stdin.read()
      """, path: folder.path("file"))
    var status = stat()
    #expect(stat(folder.path("file"), &status) == 0)
    let locks = FileLock.all().filter { $0.pid == other.pid }
    #expect(
      locks == [
        FileLock(
          pid: other.pid, file: FileIdentity(status), isExclusive: true, bytes: 4...6)
      ])
    other.finish()
    #expect(!FileLock.all().contains { $0.pid == other.pid })
  }
}
