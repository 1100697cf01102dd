import Foundation
import InstarSchema
import InstarTestSupport
import Synchronization
import Testing

@testable import InstarKeeper

@Suite("The folder of a run")
struct RunFolderTests {
  @Test("is made beside the runs of other stores, which remove '.instar/' when it is empty")
  func besideOthers() throws {
    let folder = try TemporaryFolder()
    let failures = Mutex<[String]>([])
    DispatchQueue.concurrentPerform(iterations: 4) { thread in
      let paths = StorePaths(resolvedStore: folder.path("\(thread).store"))
      for number in 0..<150 {
        do {
          try RunFolder(paths, run: "run\(thread)-\(number)").remove()
        } catch {
          failures.withLock { $0.append("\(error)") }
        }
      }
    }
    #expect(failures.withLock { $0 } == [])
    #expect(folder.names() == [])
  }

  @Test("is not made where '.instar' is a file, and the advice keeps that file")
  func fileInItsPlace() throws {
    let folder = try TemporaryFolder()
    let file = try folder.write("mine", to: ".instar", mode: 0o600)
    let paths = StorePaths(resolvedStore: folder.path("a.store"))
    let error = try instarError { _ = try RunFolder(paths, run: "a") }
    #expect(error.code == .unsafePath && error.cause == "it is not a folder")
    #expect(error.next == "run: mv -n '\(file)' '\(file).other'")
    #expect(try folder.text(of: ".instar") == "mine")
  }

  @Test("is not made where the folder of the store is gone")
  func noStore() throws {
    let folder = try TemporaryFolder()
    let paths = StorePaths(resolvedStore: folder.path("gone/a.store"))
    let error = try instarError { _ = try RunFolder(paths, run: "a") }
    #expect(error.code == .unreadableStore)
    #expect(folder.names() == [])
  }
}
