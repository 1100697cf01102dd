import Foundation
import GRDB
import Glibc
import InstarLinux
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

@testable import InstarKeeper

@Suite("The backup of an earlier run")
struct StoredBackupTests {
  private let fixture: KeeperFixture
  private let reference: BackupReference

  init() throws {
    fixture = try KeeperFixture()
    let path = fixture.folder + "/.instar/Notes.store.R1.backup"
    try FileManager.default.createDirectory(
      atPath: fixture.folder + "/.instar", withIntermediateDirectories: true)
    try FileManager.default.copyItem(atPath: fixture.store, toPath: path)
    let manifest = try BackupManifest(
      ofFile: path, run: "R1", store: fixture.store, format: .coredata, external: (0, 0))
    reference = BackupReference(run: "R1", store: fixture.store, path: path, manifest: manifest)
  }

  @Test("has a size that counts its copy, what is packed in it, and its large values")
  func size() throws {
    let bytes = try #require(reference.manifest?.bytes)
    #expect(reference.bytesToRead == bytes)

    var packed = reference
    packed.path = fixture.folder + "/gone"
    #expect(packed.bytesToRead == bytes)
    packed.manifest?.externalBytes = 5 << 30
    #expect(packed.bytesToRead == bytes + 5 << 30)

    var copied = reference
    copied.copy = fixture.folder + "/copy"
    try Data(repeating: 1, count: 1 << 20).write(to: URL(filePath: fixture.folder + "/copy"))
    #expect(copied.bytesToRead == 1 << 20)
  }

  @Test("has a size that its owner cannot make very large by a file of holes or a false manifest")
  func falseSize() throws {
    var reference = reference
    try #require(truncate(reference.path, 1 << 40) == 0)
    reference.manifest?.bytes = 1 << 20
    #expect(reference.bytesToRead == 1 << 20)
    reference.manifest?.bytes = .max
    reference.manifest?.externalBytes = .max
    #expect(reference.bytesToRead <= 128 << 30)
  }

  @Test("is not called damaged where its check took too long")
  func timeLimit() {
    let error = StoredBackup(reference: reference).unreadable(
      DatabaseError(resultCode: .SQLITE_INTERRUPT))
    #expect(error.code == .timeLimit)
    #expect(error.store == fixture.store)
    #expect(error.next?.contains(reference.path) == true)
    let damage = StoredBackup(reference: reference).unreadable(
      DatabaseError(resultCode: .SQLITE_CORRUPT))
    #expect(damage.code == .damagedBackup)
  }
}
