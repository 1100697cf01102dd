import Foundation
import InstarSchema
import InstarTestSupport
import Testing

@testable import InstarLinux

@Suite("The listing of a folder")
struct FolderNamesTests {
  @Test("the listing has the names that begin and end as wanted, without the folder itself")
  func names() throws {
    let folder = try TemporaryFolder()
    for name in ["run-1", "run-2", "a.run-1.backup", "ä.R1.backup", "a.R1.backup", ".backup"] {
      try folder.file(name, Array("x".utf8))
    }
    #expect(
      try FolderNames.all(in: folder.path, prefix: "run-").sorted() == ["run-1", "run-2"])
    #expect(
      try FolderNames.all(in: folder.path, prefix: "a.R1", suffix: ".backup") == ["a.R1.backup"]
    )
    // Prefix and suffix do not overlap.
    #expect(try FolderNames.all(in: folder.path, prefix: "run-1", suffix: "-1").isEmpty)
    #expect(try FolderNames.all(in: folder.path).count == 6)
  }

  @Test("the listing of a folder says why the folder cannot be listed")
  func missing() throws {
    let folder = try TemporaryFolder()
    let error = #expect(throws: InstarError.self) {
      try FolderNames.all(in: folder.path + "/none")
    }
    #expect(error?.code == .unreadableStore)
    #expect(error?.cause == "No such file or directory")
  }
}
