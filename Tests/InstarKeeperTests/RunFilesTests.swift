import Foundation
import GRDB
import InstarLinux
import InstarSchema
import InstarTestSupport
import Synchronization
import Testing

@testable import InstarKeeper

@Suite("The folder of a run")
struct RunFilesTests {
  @Test(
    "the folder is made beside the runs of other stores, which remove '.instar/' when it is empty",
    arguments: [false, true])
  func besideOthers(inTransaction: Bool) throws {
    let folder = try TemporaryFolder()
    let transaction = inTransaction ? try Self.transaction() : nil
    let failures = Mutex<[String]>([])
    DispatchQueue.concurrentPerform(iterations: 4) { thread in
      let paths = StorePaths(resolvedStore: folder.path("\(thread).store"))
      for number in 0..<150 {
        do {
          try RunFiles(paths, run: "run\(thread)-\(number)", transaction: transaction).remove()
        } catch {
          failures.withLock { $0.append("\(error)") }
        }
      }
    }
    #expect(failures.withLock { $0 } == [])
    #expect(folder.names() == [])
  }

  @Test("no folder is made where '.instar' is a file, and the advice keeps that file")
  func fileInItsPlace() throws {
    let folder = try TemporaryFolder()
    let file = try folder.write("mine", to: ".instar", mode: 0o600)
    let paths = StorePaths(resolvedStore: folder.path("a.store"))
    let error = try instarError { _ = try RunFiles(paths, run: "a") }
    #expect(error.code == .unsafePath && error.cause == "'\(file)' is not a folder")
    #expect(error.next == "run: mv -n '\(file)' '\(file).other'")
    #expect(try folder.text(of: ".instar") == "mine")
  }

  @Test("no folder is made where others can enter '.instar', whose mode and owner are named")
  func openToOthers() throws {
    let folder = try TemporaryFolder()
    let path = folder.path(".instar")
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    #expect(chmod(path, 0o777) == 0)
    let error = try instarError {
      _ = try RunFiles(StorePaths(resolvedStore: folder.path("a.store")), run: "a")
    }
    let user = ProcessIdentity.label(of: geteuid())
    #expect(
      error.cause
        == "the folder '\(path)' has mode 777 and belongs to user \(user); only user \(user) "
        + "may be able to enter it")
  }

  @Test("no folder is made where the folder of the store is gone")
  func noStore() throws {
    let folder = try TemporaryFolder()
    let paths = StorePaths(resolvedStore: folder.path("gone/a.store"))
    let error = try instarError { _ = try RunFiles(paths, run: "a") }
    #expect(error.code == .unreadableStore)
    #expect(folder.names() == [])
  }

  @Test(
    "the folder of a run in a transaction has a locked copy of the store, which stays once it is the backup"
  )
  func inTransaction() throws {
    let folder = try TemporaryFolder()
    let paths = StorePaths(resolvedStore: folder.path("a.store"))
    let files = try RunFiles(paths, run: "a", transaction: Self.transaction())
    #expect(folder.names(".instar") == ["a.store.a.copy"])
    #expect(try FolderLock.tryLock(files.backup) == nil)
    #expect(rename(files.backup, paths.backup("a")) == 0)
    #expect(try FolderLock.tryLock(paths.backup("a")) == nil)
    files.remove()
    #expect(folder.names(".instar") == ["a.store.a.backup"])
    #expect(try FolderLock.tryLock(paths.backup("a")) != nil)
  }

  @Test("the next run of the same store removes the folder of a dead run, whatever its clone was")
  func deadRuns() throws {
    let folder = try TemporaryFolder()
    try FileManager.default.createDirectory(
      atPath: folder.path(".instar/run-dead/clone"), withIntermediateDirectories: true,
      attributes: [.posixPermissions: 0o700])
    try folder.write("", to: ".instar/run-dead/clone/a.store")
    for name in ["a.store.dead.copy", "a.store.alive.copy", "b.store.dead.copy"] {
      try folder.write("", to: ".instar/" + name)
    }
    let alive = try FolderLock.tryLock(folder.path(".instar/a.store.alive.copy"))
    let files = try RunFiles(
      StorePaths(resolvedStore: folder.path("a.store")), run: "next",
      transaction: Self.transaction())
    #expect(
      folder.names(".instar") == ["a.store.alive.copy", "a.store.next.copy", "b.store.dead.copy"])
    alive?.release()
    files.remove()
  }

  private static func transaction() throws -> StoreTransaction {
    StoreTransaction(of: try DatabaseQueue(), making: [])
  }
}
