internal import Foundation
internal import GRDB
internal import InstarSchema
internal import InstarStore

/// Finds out whether stages left all rows of the app in a clone as they are in the store: byte for byte, on the same
/// pages.
///
/// Adding or renaming a column and similar changes write the schema only, and the history where a store has one. Then
/// what is checked in the store need not be checked in its clone once more, and what is checked in the clone holds for
/// the store. The comparison reads both files once and evaluates nothing, so it takes a fraction of the time of a
/// check.
///
/// Equal are the rows where all of this is true:
/// - each page of the store that is neither free nor in one of its own trees (see `PageBaseline`) has the same bytes
///   in the clone;
/// - together, the clone's own trees and free pages have the pages of the store's, and pages that were appended. No
///   page is in two of these trees, or in one and free. With auto-vacuum SQLite also records free pages in other
///   pages, so there the answer is "no" if one becomes free or is used;
/// - the schemas name the same roots in the same order;
/// - the clone's own trees, their indexes and its list of free pages are sound.
///
/// So every other tree of the clone is a tree of the store, and shares no page with the trees that were written. The
/// store's own trees differ from the clone's, so the check of the store reads these too. Where anything else is found,
/// the answer is "no", and both are checked in full.
struct PageComparison: Sendable {
  /// The clone, which nobody writes.
  let clone: String
  /// The store, or the copy that becomes its backup, which nobody writes.
  let source: BackupSource
  /// Of the store.
  let own: PageBaseline
  let format: StoreFormat

  /// From how many pages on two files are compared. A smaller clone is sooner checked.
  static let smallestPageCount = 2_000

  /// - Throws: Why a file cannot be read.
  func perform() throws -> Bool {
    let clone = open(clone, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
    guard clone >= 0 else { throw RunFiles.failure("cannot read '\(self.clone)'", errno) }
    defer { close(clone) }
    switch source {
    case .store(let content):
      return try hasSameRows(clone, content.descriptor)
    case .copy(let path):
      let copy = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
      guard copy >= 0 else { throw RunFiles.failure("cannot read '\(path)'", errno) }
      defer { close(copy) }
      return try hasSameRows(clone, copy)
    }
  }

  private func hasSameRows(_ clone: Int32, _ store: Int32) throws -> Bool {
    let free = try Self.freePages(store, pageSize: own.pageSize, pageCount: own.pageCount)
    guard let free, free.isDisjoint(with: own.pages) else { return false }
    let others = own.pages.union(free)
    guard try isEqual(clone, store, except: others) else { return false }
    do {
      return try GuardedConnection.use(self.clone, access: .immutable) {
        try hasSoundTrees($0, clone, on: others)
      }
    } catch is DatabaseError {
      return false
    } catch let error as InstarError where [.corruptStore, .unsupported].contains(error.code) {
      return false
    }
  }

  /// - Parameter pages: Those of the store's own trees, and its free pages.
  private func hasSoundTrees(_ db: Database, _ clone: Int32, on pages: Set<Int>) throws -> Bool {
    guard let now = try PageBaseline(db, format: format, includesHistory: own.includesHistory),
      now.pageSize == own.pageSize,
      now.roots == own.roots, now.tables == own.tables, now.pageCount >= own.pageCount,
      let free = try Self.freePages(clone, pageSize: now.pageSize, pageCount: now.pageCount),
      free.isDisjoint(with: now.pages),
      now.pages.union(free) == pages.union(own.pageCount + 1..<now.pageCount + 1)
    else { return false }
    for table in now.tables { try StoreCheck.requireQuickCheck(db, "the clone", of: table) }
    try StoreCheck.requireIndexes(db, "the clone", path: nil, of: .only(now.tables))
    return true
  }

  private static let pagesAtOnce = 64

  private func isEqual(
    _ clone: Int32, _ store: Int32, except others: Set<Int>
  ) throws -> Bool {
    let size = own.pageSize * Self.pagesAtOnce
    let buffers = [size, size].map {
      UnsafeMutableRawBufferPointer.allocate(byteCount: $0, alignment: 16)
    }
    defer { for buffer in buffers { buffer.deallocate() } }
    for first in stride(from: 0, to: own.pageCount, by: Self.pagesAtOnce) {
      let count = min(own.pageCount - first, Self.pagesAtOnce)
      for (descriptor, buffer) in zip([clone, store], buffers) {
        let pages = UnsafeMutableRawBufferPointer(rebasing: buffer[..<(count * own.pageSize)])
        guard try Self.read(descriptor, into: pages, at: first * own.pageSize) else { return false }
      }
      guard
        let (left, right) = buffers[0].baseAddress.flatMap({ left in
          buffers[1].baseAddress.map { (left, $0) }
        })
      else { return false }
      if memcmp(left, right, count * own.pageSize) == 0 { continue }
      for page in 0..<count where !others.contains(first + page + 1) {
        let offset = page * own.pageSize
        guard memcmp(left + offset, right + offset, own.pageSize) == 0 else { return false }
      }
    }
    return true
  }

  /// Fills the buffer with bytes of a file.
  ///
  /// - Returns: `false` where the file ends before.
  static func read(
    _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer, at offset: Int
  ) throws -> Bool {
    var done = 0
    while done < buffer.count {
      let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
      let read = pread(descriptor, rest.baseAddress, rest.count, off_t(offset + done))
      if read < 0, errno == EINTR { continue }
      guard read >= 0 else {
        throw RunFiles.failure("cannot compare the clone with the store", errno)
      }
      if read == 0 { return false }
      done += read
    }
    return true
  }
}
