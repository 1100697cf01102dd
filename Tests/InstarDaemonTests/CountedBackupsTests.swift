import Foundation
import InstarTestSupport
import Testing

@testable import InstarDaemon

@Suite("The number of a store's backups")
struct CountedBackupsTests {
  @Test(
    "the number of backups is read from the folder, and runs are counted until it is read again")
  func counts() throws {
    let folder = try TemporaryFolder()
    let (a, b) = (folder.path("a.store"), folder.path("a.store.b"))
    try FileManager.default.createDirectory(
      atPath: folder.path(".instar"), withIntermediateDirectories: false)
    func make(_ name: String) throws { try folder.file(".instar/\(name).backup", "x".utf8) }
    for name in ["a.store.R1", "a.store.R2", "a.store.b.R1"] { try make(name) }
    try folder.file(".instar/a.store.R1.json", "x".utf8)
    let counts = CountedBackups()
    let start = ContinuousClock.now
    #expect(counts.noteBackup(of: a, at: start) == 2)
    #expect(counts.noteBackup(of: b, at: start) == 2)
    #expect(counts.noteBackup(of: a, at: start + .seconds(1)) == 3)
    #expect(counts.noteBackup(of: a, at: start + .seconds(1)) == 4)
    // The folder is read again, and has two.
    #expect(counts.noteBackup(of: a, at: start + .seconds(11)) == 2)
  }

  @Test("the number of backups is one where the folder cannot be listed")
  func missing() {
    #expect(CountedBackups().noteBackup(of: "/srv/none/a.store") == 1)
  }
}
