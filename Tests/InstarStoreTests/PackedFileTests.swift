import Foundation
import InstarSchema
import InstarStore
import InstarTestSupport
import Testing

@Suite("A file that is compressed")
struct PackedFileTests {
  let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// Packs some bytes; returns the path.
  private func pack(_ bytes: Data) throws -> String {
    try bytes.write(to: URL(filePath: folder.path("plain")))
    try Data().write(to: URL(filePath: folder.path("packed")))
    try PackedFile.pack(folder.path("plain"), to: folder.path("packed"))
    return folder.path("packed")
  }

  private func error(_ path: String, limit: Int64 = 1 << 30) -> InstarError? {
    do throws(InstarError) {
      _ = try PackedFile.digest(of: path, limit: limit)
      return nil
    } catch {
      return error
    }
  }

  @Test(
    "a packed file has the content and the digest that it had",
    arguments: [0, 1, 4096, 262_144, 3_000_001])
  func roundTrip(size: Int) throws {
    var random = SeededGenerator(seed: UInt64(size) + 1)
    // Half of it can be compressed.
    let bytes = Data((0..<size).map { $0 % 2 == 0 ? 7 : UInt8.random(in: 0...255, using: &random) })
    let packed = try pack(bytes)
    let read = try PackedFile.digest(of: packed, limit: Int64(size))
    #expect(try read.digest == FileDigest.ofFile(folder.path("plain")))
    #expect(read.bytes == Int64(size))
    try Data("longer than nothing".utf8).write(to: URL(filePath: folder.path("again")))
    try PackedFile.unpack(packed, to: folder.path("again"), limit: Int64(size))
    #expect(FileManager.default.contents(atPath: folder.path("again")) == bytes)
  }

  @Test("a packed file that is cut off, changed, empty or larger inside than it may be is refused")
  func damaged() throws {
    let bytes = Data((0..<100_000).map { UInt8($0 % 251) })
    let packed = try pack(bytes)
    let whole = try #require(FileManager.default.contents(atPath: packed))
    #expect(error(packed) == nil)
    #expect(error(packed, limit: 99_999)?.cause.contains("more than 99999 bytes") == true)
    for size in [0, 1, whole.count / 2, whole.count - 1] {
      try whole.prefix(size).write(to: URL(filePath: packed))
      #expect(error(packed)?.cause == "the end of the compressed file is missing", "\(size) bytes")
    }
    for place in whole.indices {
      var changed = whole
      changed[place] ^= 0x10
      try changed.write(to: URL(filePath: packed))
      let digest = try? PackedFile.digest(of: packed, limit: 1 << 20).digest
      #expect(
        try digest == nil || digest == FileDigest.ofFile(folder.path("plain")), "byte \(place)")
    }
    try (whole + Data("more".utf8)).write(to: URL(filePath: packed))
    #expect(error(packed) != nil)
  }
}
