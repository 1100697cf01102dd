import Foundation
import InstarLinux
import InstarSchema
import Testing

@Suite("DurableFile and FolderLock")
struct DurableFileTests {
  @Test("a file is replaced whole, with the mode asked for, and nothing else is left in its folder")
  func write() throws {
    let folder = try TemporaryFolder()
    let path = folder.file("a.json")
    try DurableFile.write(Data("old".utf8), to: path, mode: 0o644)
    try DurableFile.write(Data("new".utf8), to: path, mode: 0o600)
    #expect(try folder.text(of: "a.json") == "new")
    #expect(try folder.names() == ["a.json"])
    let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    #expect(mode == 0o600)
  }

  @Test("a write that cannot be done leaves nothing behind")
  func failure() throws {
    let folder = try TemporaryFolder()
    try FileManager.default.createDirectory(
      atPath: folder.file("taken/full"), withIntermediateDirectories: true)
    let error = try instarError {
      try DurableFile.write(Data("x".utf8), to: folder.file("taken"), mode: 0o600)
    }
    #expect(error.code == .stateFolderFailed)
    #expect(try folder.names() == ["taken"])
  }

  @Test("lines are appended, and one that a crash has cut off is ended first")
  func append() throws {
    let folder = try TemporaryFolder()
    let path = folder.file("ledger")
    try DurableFile.append(line: Data("one".utf8), to: path, mode: 0o600)
    try DurableFile.append(line: Data("two\n".utf8), to: path, mode: 0o600)
    try folder.write("one\ntwo\nthr", to: "ledger")
    try DurableFile.append(line: Data("four".utf8), to: path, mode: 0o600)
    #expect(try folder.text(of: "ledger") == "one\ntwo\nthr\nfour\n")
  }

  @Test("appending does not follow a symbolic link, and does not wait for a FIFO")
  func unsafeTargets() throws {
    let folder = try TemporaryFolder()
    let target = try folder.write("kept", to: "target")
    try FileManager.default.createSymbolicLink(
      atPath: folder.file("link"), withDestinationPath: target)
    #expect(mkfifo(folder.file("fifo"), 0o600) == 0)
    for name in ["link", "fifo"] {
      let error = try instarError {
        try DurableFile.append(line: Data("x".utf8), to: folder.file(name), mode: 0o600)
      }
      #expect(error.code == .stateFolderFailed)
    }
    #expect(try folder.text(of: "target") == "kept")
  }

  @Test("removing a file that is not there is no error")
  func remove() throws {
    let folder = try TemporaryFolder()
    try folder.write("x", to: "a")
    try DurableFile.remove(folder.file("a"))
    try DurableFile.remove(folder.file("a"))
    #expect(try folder.names() == [])
  }

  @Test("a lock has one holder, until that lets go or dies")
  func lock() throws {
    let folder = try TemporaryFolder()
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
    let folder = try TemporaryFolder()
    let path = try folder.write("", to: "lock")
    let lock = try #require(try FolderLock.tryLock(path))
    try DurableFile.write(Data(), to: path, mode: 0o600)
    #expect(!lock.isStillAt(path))
  }
}
