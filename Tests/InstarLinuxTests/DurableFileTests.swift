import Foundation
import InstarLinux
import InstarSchema
import InstarTestSupport
import Testing

@Suite("DurableFile and FolderLock")
struct DurableFileTests {
  @Test("a file is replaced whole, with the mode asked for, and nothing else is left in its folder")
  func write() throws {
    let folder = try TemporaryFolder(mode: 0o700)
    let path = folder.path("a.json")
    try DurableFile.write(Data("old".utf8), to: path, mode: 0o644)
    try DurableFile.write(Data("new".utf8), to: path, mode: 0o600)
    #expect(try folder.text(of: "a.json") == "new")
    #expect(folder.names() == ["a.json"])
    let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    #expect(mode == 0o600)
  }

  @Test("a write that cannot be done leaves nothing behind")
  func failure() throws {
    let folder = try TemporaryFolder(mode: 0o700)
    try FileManager.default.createDirectory(
      atPath: folder.path("taken/full"), withIntermediateDirectories: true)
    let error = try instarError {
      try DurableFile.write(Data("x".utf8), to: folder.path("taken"), mode: 0o600)
    }
    #expect(error.code == .stateFolderFailed)
    #expect(folder.names() == ["taken"])
  }

  @Test("lines are appended, and one that a crash has cut off is ended first")
  func append() throws {
    let folder = try TemporaryFolder(mode: 0o700)
    let path = folder.path("ledger")
    try DurableFile.append(line: Data("one".utf8), to: path, mode: 0o600)
    try DurableFile.append(line: Data("two\n".utf8), to: path, mode: 0o600)
    try folder.write("one\ntwo\nthr", to: "ledger")
    try DurableFile.append(line: Data("four".utf8), to: path, mode: 0o600)
    #expect(try folder.text(of: "ledger") == "one\ntwo\nthr\nfour\n")
  }

  @Test("appending does not follow a symbolic link, and does not wait for a FIFO")
  func unsafeTargets() throws {
    let folder = try TemporaryFolder(mode: 0o700)
    let target = try folder.write("kept", to: "target")
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("link"), withDestinationPath: target)
    #expect(mkfifo(folder.path("fifo"), 0o600) == 0)
    for name in ["link", "fifo"] {
      let error = try instarError {
        try DurableFile.append(line: Data("x".utf8), to: folder.path(name), mode: 0o600)
      }
      #expect(error.code == .stateFolderFailed)
    }
    #expect(try folder.text(of: "target") == "kept")
  }

  @Test("removing a file that is not there is no error")
  func remove() throws {
    let folder = try TemporaryFolder(mode: 0o700)
    try folder.write("x", to: "a")
    try DurableFile.remove(folder.path("a"))
    try DurableFile.remove(folder.path("a"))
    #expect(folder.names() == [])
  }

  @Test("a lock has one holder until that releases it or dies")
  func lock() throws {
    let folder = try TemporaryFolder(mode: 0o700)
    let first = try #require(try FolderLock.tryLock(folder.path))
    #expect(try FolderLock.tryLock(folder.path) == nil)
    first.release()
    do {
      let second = try #require(try FolderLock.tryLock(folder.path))
      #expect(second.isStillAt(folder.path))
    }
    let holder = try ChildProcess.start(
      executable: "/usr/bin/flock", arguments: [folder.path, "-c", "echo held; exec sleep 1000"],
      output: .captured(limitBytes: 100))
    try holder.waitForOutput()
    #expect(try FolderLock.tryLock(folder.path) == nil)
    holder.kill()
    _ = try holder.wait()
    // Waits until the kernel has closed the files of the killed group.
    _ = try FolderLock.lock(folder.path)
  }

  @Test("a lock on a file that was replaced is known to keep nobody out")
  func replaced() throws {
    let folder = try TemporaryFolder(mode: 0o700)
    let path = try folder.write("", to: "lock")
    let lock = try #require(try FolderLock.tryLock(path))
    try DurableFile.write(Data(), to: path, mode: 0o600)
    #expect(!lock.isStillAt(path))
  }
}
