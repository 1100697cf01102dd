internal import Foundation
internal import GRDB
internal import InstarStore

/// Finds out whether the transaction of a run left all rows of the store as they are in the backup: byte for byte, on
/// the same pages. What `PageComparison` does for two files.
///
/// Equal are the rows where all of this is true:
/// - both have the same number of pages, the same list of free pages and the same settings;
/// - the schema's tree has the same pages in both, and each other page has the same bytes;
/// - the schemas name the same roots in the same order.
///
/// So every tree but the schema's is a tree of the backup, which is checked, and the schema shares no page with them.
/// Where anything else is found, the answer is "no". Whether the new schema gives these bytes another meaning is not
/// asked here.
struct TransactionComparison {
  /// The copy of the store, which was checked.
  let backup: String
  /// Of the store; `nil` for a large schema, which is not compared.
  let roots: [UInt8]?
  let pageSize: Int

  /// - Parameter db: The connection of the transaction.
  /// - Throws: Why the backup cannot be read; the database's error.
  func hasSameRows(_ db: Database) throws -> Bool {
    guard let roots, try SchemaKey.roots(db) == roots else { return false }
    let backup = open(backup, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
    guard backup >= 0 else { throw RunFiles.failure("cannot read '\(self.backup)'", errno) }
    defer { close(backup) }
    return try db.withAllPages { now in
      var status = stat()
      guard fstat(backup, &status) == 0, status.st_size == now.count else { return false }
      let before = UnsafeMutableRawBufferPointer.allocate(byteCount: now.count, alignment: 16)
      defer { before.deallocate() }
      guard try PageComparison.read(backup, into: before, at: 0) else { return false }
      return hasSameRows(UnsafeRawBufferPointer(before), now)
    } ?? false
  }

  private func hasSameRows(_ before: UnsafeRawBufferPointer, _ now: UnsafeRawBufferPointer) -> Bool
  {
    guard now.count >= pageSize, pageSize >= Self.headerBytes, now.count % pageSize == 0,
      hasSameHeader(before, now),
      let schema = schemaTree(in: before), schemaTree(in: now) == schema
    else { return false }
    return (1...now.count / pageSize).allSatisfy { number in
      guard !schema.contains(number), let old = page(number, of: before).baseAddress,
        let new = page(number, of: now).baseAddress
      else { return true }
      return memcmp(old, new, pageSize) == 0
    }
  }

  /// The file's header, which is the start of the first page (SQLite file format, section 1.3).
  private static let headerBytes = 100
  /// Where it may differ: how the file is written, how often it was changed, which version of SQLite wrote it, and the
  /// counter of changes of the schema.
  private static let changingBytes = [18..<20, 24..<28, 40..<44, 92..<100]

  private func hasSameHeader(
    _ before: UnsafeRawBufferPointer, _ now: UnsafeRawBufferPointer
  ) -> Bool {
    (0..<Self.headerBytes).allSatisfy { byte in
      before[byte] == now[byte] || Self.changingBytes.contains { $0.contains(byte) }
    }
  }

  private func page(_ number: Int, of pages: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: pages[(number - 1) * pageSize..<number * pageSize])
  }

  private static let (innerPage, leafPage): (UInt8, UInt8) = (5, 13)

  /// The pages of the schema's b-tree, without those of long statements (SQLite file format, section 1.6).
  ///
  /// - Returns: `nil` where the tree is not as SQLite writes it.
  private func schemaTree(in pages: UnsafeRawBufferPointer) -> Set<Int>? {
    var found = Set<Int>()
    var left = [1]
    while let number = left.popLast() {
      guard 1...pages.count / pageSize ~= number, found.insert(number).inserted else { return nil }
      let page = page(number, of: pages)
      let header = number == 1 ? Self.headerBytes : 0
      if page[header] == Self.leafPage { continue }
      guard page[header] == Self.innerPage else { return nil }
      func value(at offset: Int, bytes: Int) -> Int? {
        guard offset + bytes <= pageSize else { return nil }
        return page[offset..<offset + bytes].reduce(0) { $0 << 8 | Int($1) }
      }
      guard let cells = value(at: header + 3, bytes: 2) else { return nil }
      for cell in 0..<cells {
        guard
          let child = value(at: header + 12 + 2 * cell, bytes: 2)
            .flatMap({ value(at: $0, bytes: 4) })
        else { return nil }
        left.append(child)
      }
      guard let last = value(at: header + 8, bytes: 4) else { return nil }
      left.append(last)
    }
    return found
  }
}
