import Dispatch
import Foundation
import InstarTestSupport
import Synchronization
import Testing

@testable import InstarLinux

@Suite("FileReader")
struct FileReaderTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder(mode: 0o700)
    for name in ["silent", "fine"] {
      try FileManager.default.createDirectory(
        atPath: folder.path(name), withIntermediateDirectories: false)
    }
  }

  private static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

  @Test(
    "a file system without an answer is asked nothing more until it answers",
    .enabled(if: SilentFileSystem.canMount, "mounting needs root and FUSE"), .timeLimit(.minutes(1))
  )
  func silence() throws {
    try folder.write("x", to: "fine/a.store")
    let fileSystem = try SilentFileSystem(at: folder.path("silent"))
    defer { fileSystem.end() }
    let reader = FileReader(patience: .seconds(1))
    let asked = Mutex<[String]>([])
    func answers(_ names: String...) -> [Bool] {
      reader.answers(about: names.map(folder.path)) { path in
        asked.withLock { $0.append(path) }
        return Self.exists(path)
      }
    }
    #expect(answers("fine/a.store", "silent/b/a.store", "fine/a.store") == [true])
    #expect(answers("silent/c/a.store", "fine/a.store") == [])
    #expect(answers("fine/a.store", "silent/d/a.store") == [true])
    let names = ["fine/a.store", "silent/b/a.store", "fine/a.store"]
    #expect(asked.withLock(\.self) == names.map(folder.path))

    fileSystem.end()
    #expect(answers("silent/c/a.store", "fine/a.store") == [false, true])
  }

  @Test(
    "a link to a file system without an answer silences only what is below the link",
    .enabled(if: SilentFileSystem.canMount, "mounting needs root and FUSE"), .timeLimit(.minutes(1))
  )
  func link() throws {
    let silent = try SilentFileSystem(at: folder.path("silent"))
    defer { silent.end() }
    try #require(mount("tmpfs", folder.path("fine"), "tmpfs", 0, nil) == 0)
    defer { umount2(folder.path("fine"), Int32(MNT_DETACH)) }
    try folder.write("x", to: "fine/a.store")
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("fine/link"), withDestinationPath: folder.path("silent/stores"))
    let reader = FileReader(patience: .milliseconds(300))
    #expect(reader.answers(about: [folder.path("fine/link/a.store")], Self.exists) == [])
    let isSilent = reader.silence()
    #expect(isSilent(folder.path("fine/link/b.store")))
    #expect(!isSilent(folder.path("fine/a.store")))
  }

  @Test("a question that hangs where the file system answers silences only its own path")
  func slowQuestion() {
    let reader = FileReader(patience: .milliseconds(100))
    let end = DispatchSemaphore(value: 0)
    defer { end.signal() }
    #expect(reader.answers(about: ["/proc/slow"]) { _ in end.wait() }.isEmpty)
    let isSilent = reader.silence()
    #expect(isSilent("/proc/slow"))
    #expect(!isSilent("/proc/other"))
  }

  @Test("a file system that answers counts as one where no thread can be started")
  func noThread() throws {
    let file = try folder.write("x", to: "fine/a.store")
    // No address space is that large, so the kernel refuses the stack.
    let reader = FileReader(patience: .seconds(1), stackBytes: 1 << 60)
    #expect(reader.answers(about: [file], Self.exists) == [true])
    #expect(!reader.silence()(file))
  }
}
