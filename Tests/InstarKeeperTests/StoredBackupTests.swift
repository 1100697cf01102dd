import Foundation
import GRDB
import Glibc
import InstarLinux
import InstarSchema
import InstarStore
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

  @Test("the size of a backup counts its copy, what is compressed in it, and its large values")
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

  @Test(
    "the owner of a backup cannot make its size very large by a file of holes or a false manifest")
  func falseSize() throws {
    var reference = reference
    try #require(truncate(reference.path, 1 << 40) == 0)
    reference.manifest?.bytes = 1 << 20
    #expect(reference.bytesToRead == 1 << 20)
    reference.manifest?.bytes = .max
    reference.manifest?.externalBytes = .max
    #expect(reference.bytesToRead <= 128 << 30)
  }

  @Test("a backup may have more files of large values than a probe counts")
  func manyFiles() throws {
    let folder = ExternalValues.folder(ofStore: reference.path)
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let names = Set((0..<100_001).map { _ in UUID().uuidString })
    for name in names {
      let descriptor = open("\(folder)/\(name)", O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
      try #require(descriptor >= 0)
      close(descriptor)
    }
    var reference = reference
    reference.manifest?.externalFiles = names.count
    try StoredBackup(reference: reference).verify()
    #expect(ExternalFiles.ofBackup(reference.path).names() == names)

    reference.manifest?.externalFiles = names.count + 1
    let error = #expect(throws: InstarError.self) {
      try StoredBackup(reference: reference).verify()
    }
    #expect(error?.code == .damagedBackup)
    #expect(error?.cause.contains("has 100001 files") == true)
  }

  @Test("a backup is not copied to a path in a file, and the advice is to name another path")
  func targetInFile() throws {
    let error = #expect(throws: InstarError.self) {
      try StoredBackup(reference: reference).copy(to: reference.path + "/Copy.store")
    }
    #expect(error?.cause == "'\(reference.path)' is not a folder")
    #expect(error?.next == "name a path in a folder instead")
  }

  @Test(
    "the remains of a backup are removed, and those of its copy, only where its file is missing")
  func remains() throws {
    var reference = reference
    let copies = fixture.folder + "/copies"
    try FileManager.default.createDirectory(
      atPath: copies, withIntermediateDirectories: false)
    let copy = copies + "/Notes.store.R1.backup"
    try FileManager.default.copyItem(atPath: reference.path, toPath: copy)
    reference.copy = copy
    let backup = StoredBackup(reference: reference)
    for path in [reference.path, copy] {
      try Data("{}".utf8).write(to: URL(filePath: BackupManifest.path(ofBackup: path)))
      try FileManager.default.createDirectory(
        atPath: ExternalValues.folder(ofStore: path), withIntermediateDirectories: true)
      try Data("x".utf8).write(
        to: URL(filePath: ExternalValues.folder(ofStore: path) + "/" + Self.value))
    }
    func names(beside path: String) throws -> Int {
      try FileManager.default.subpathsOfDirectory(
        atPath: (path as NSString).deletingLastPathComponent
      ).count
    }
    let all = try [reference.path, copy].map(names)
    backup.removeRemains()
    #expect(try [reference.path, copy].map(names) == all)
    try FileManager.default.removeItem(atPath: copy)
    backup.removeRemains()
    #expect(try [reference.path, copy].map(names) == [all[0], 0])
    try FileManager.default.removeItem(atPath: reference.path)
    backup.removeRemains()
    #expect(!FileManager.default.fileExists(atPath: fixture.folder + "/.instar"))
    backup.removeRemains()
  }

  private static let value = "6B29FC40-CA47-1067-B31D-00DD010662D1"
  private static let other = "6B29FC40-CA47-1067-B31D-00DD010662D2"

  /// Has rows of the backup reference two files beside it.
  private func addValues() throws -> StoredBackup {
    var reference = reference
    reference.manifest = nil
    let folder = ExternalValues.folder(ofStore: reference.path)
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let queue = try DatabaseQueue(path: reference.path)
    for (key, name) in [Self.value, Self.other].enumerated() {
      try Data(name.utf8).write(to: URL(filePath: "\(folder)/\(name)"))
      try queue.write { db in
        try db.execute(
          sql: "UPDATE ZNOTE SET ZPHOTO = CAST(x'02' || ? || x'00' AS BLOB) WHERE Z_PK = ?",
          arguments: [name, key + 1])
      }
    }
    try queue.close()
    return StoredBackup(reference: reference)
  }

  private func mode(_ path: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
  }

  @Test(
    "a backup is copied with large values that every user of the copy may use, whatever the umask")
  func copiedModes() throws {
    let backup = try addValues()
    try #require(chmod(fixture.store, 0o660) == 0)
    let target = fixture.folder + "/Copy.store"
    let earlier = umask(0o077)
    defer { umask(earlier) }
    try backup.copy(to: target)
    #expect(try mode(target) == 0o660)
    let support = fixture.folder + "/.Copy_SUPPORT"
    for folder in [support, support + "/_EXTERNAL_DATA"] { #expect(try mode(folder) == 0o770) }
    for name in [Self.value, Self.other] {
      #expect(try mode("\(support)/_EXTERNAL_DATA/\(name)") == 0o660)
    }
  }

  @Test("nobody is told to remove the file that a copy of a backup would replace")
  func copyOntoFile() throws {
    let backup = try addValues()
    let ofStore = #expect(throws: InstarError.self) { try backup.copy(to: fixture.store) }
    #expect(ofStore?.code == .outputFailed && ofStore?.cause == "the file is the store itself")
    let restore = CommandText.restore(fixture.store, run: backup.reference.run)
    #expect(ofStore?.next == "run: \(restore)")

    let other = fixture.folder + "/Other.store"
    try Data("there".utf8).write(to: URL(filePath: other))
    let ofOther = #expect(throws: InstarError.self) { try backup.copy(to: other) }
    #expect(ofOther?.code == .outputFailed && ofOther?.cause == "the file exists")
    #expect(ofOther?.next == "choose a path that does not exist")
  }

  @Test(
    "a copy of a backup that fails half-way leaves no large value, and none that was there is lost")
  func failedCopy() throws {
    let backup = try addValues()
    let target = fixture.folder + "/Copy.store"
    let folder = fixture.folder + "/.Copy_SUPPORT/_EXTERNAL_DATA"
    // A folder in place of a value makes its copy fail.
    try FileManager.default.createDirectory(
      atPath: "\(folder)/\(Self.other)", withIntermediateDirectories: true)
    let error = #expect(throws: InstarError.self) { try backup.copy(to: target) }
    #expect(error?.code == .outputFailed)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == [Self.other])
    #expect(!FileManager.default.fileExists(atPath: target))

    try FileManager.default.removeItem(atPath: "\(folder)/\(Self.other)")
    try Data("there".utf8).write(to: URL(filePath: "\(folder)/\(Self.value)"))
    try backup.copy(to: target)
    let names = try FileManager.default.contentsOfDirectory(atPath: folder)
    #expect(Set(names) == [Self.value, Self.other])
    #expect(
      FileManager.default.contents(atPath: "\(folder)/\(Self.value)") == Data("there".utf8))
  }

  @Test("what a killed keeper left of a copy becomes neither the store nor one of its values")
  func unfinishedCopy() throws {
    let backup = try addValues()
    let target = fixture.folder + "/Copy.store"
    let folder = fixture.folder + "/.Copy_SUPPORT/_EXTERNAL_DATA"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    for path in ["\(target).R1.part", "\(folder)/\(Self.value).R1.part"] {
      try Data("unfinished".utf8).write(to: URL(filePath: path))
    }
    try backup.copy(to: target)
    #expect(
      FileManager.default.contents(atPath: target)
        == FileManager.default.contents(atPath: reference.path))
    #expect(!FileManager.default.fileExists(atPath: "\(target).R1.part"))
    let names = try FileManager.default.contentsOfDirectory(atPath: folder)
    #expect(Set(names) == [Self.value, Self.other])
    #expect(
      FileManager.default.contents(atPath: "\(folder)/\(Self.value)") == Data(Self.value.utf8))
  }

  @Test("a large value has no name beside the copy of its backup before it is whole")
  func valueUnderUnfinishedName() throws {
    let backup = try addValues()
    let target = fixture.folder + "/Copy.store"
    let folder = fixture.folder + "/.Copy_SUPPORT/_EXTERNAL_DATA"
    // Nobody can remove a folder as a file, so the copy ends where it would write its unfinished file.
    try FileManager.default.createDirectory(
      atPath: "\(folder)/\(Self.value).R1.part", withIntermediateDirectories: true)
    #expect(throws: InstarError.self) { try backup.copy(to: target) }
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: folder) == ["\(Self.value).R1.part"])
    #expect(!FileManager.default.fileExists(atPath: target))
  }

  @Test("a backup is not called damaged where its check took too long")
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

  @Test(
    "an error proves unusable content only where SQLite could read the file",
    arguments: [
      (ResultCode.SQLITE_CORRUPT, true), (.SQLITE_NOTADB, true), (.SQLITE_ERROR, true),
      (.SQLITE_IOERR_READ, false), (.SQLITE_NOMEM, false), (.SQLITE_CANTOPEN, false),
      (.SQLITE_BUSY, false), (.SQLITE_FULL, false), (.SQLITE_INTERRUPT, false),
    ])
  func content(code: ResultCode, isProof: Bool) {
    let error = DatabaseError(resultCode: code)
    #expect(InstarError(error, what: "cannot read").provesUnusableContent == isProof)
    let known = StoredBackup(reference: reference).unreadable(error)
    #expect((known.code == .damagedBackup) == isProof)
    struct Undecoded: Error {}
    #expect(InstarError(Undecoded(), what: "cannot read").provesUnusableContent)
  }

  @Test("an app's file that left in an exchange is not damaged where SQLite cannot open it")
  func unopenedFormerFile() throws {
    // SQLite opens no path of more than 512 bytes, but others do.
    let level = "/" + String(repeating: "x", count: 200)
    let deep = fixture.folder + level + level + level
    try FileManager.default.createDirectory(atPath: deep, withIntermediateDirectories: true)
    let path = deep + "/Notes.store.R1.backup"
    #expect(link(reference.path, path) == 0)
    var earlier = try #require(reference.manifest)
    earlier.contentHash = "of its content before an app wrote"
    let file = try FormerFile(at: path, earlier: earlier)
    #expect(file.manifest.isSound && file.manifest.contentHash == reference.manifest?.contentHash)
    #expect(file.notes.contains { $0.contains("instarctl backups verify '\(fixture.store)'") })
    let bytes = try #require(FileManager.default.contents(atPath: path))
    try Data(bytes.prefix(bytes.count / 2)).write(to: URL(filePath: reference.path))
    let damaged = try FormerFile(at: reference.path, earlier: earlier)
    #expect(!damaged.manifest.isSound)
  }
}
