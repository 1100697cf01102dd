internal import Foundation

extension PageComparison {
  /// A longer list of free pages needs much memory: then nobody compares pages.
  private static let freePageLimit = 1 << 20

  /// Reads the list of free pages of a database file: a chain of pages, each with the numbers of others (SQLite file
  /// format, section 1.5).
  ///
  /// - Returns: The numbers of all pages in it; `nil` where it is damaged, or too long.
  /// - Throws: Why the file cannot be read.
  static func freePages(_ descriptor: Int32, pageSize: Int, pageCount: Int) throws -> Set<Int>? {
    guard let header = try words(descriptor, at: 32, count: 2), header[1] <= freePageLimit else {
      return nil
    }
    var pages = Set<Int>()
    func add(_ page: Int) -> Bool {
      // The first page is the root of the schema. A page that is in the list twice would make the chain endless.
      2...max(pageCount, 2) ~= page && pages.insert(page).inserted
    }
    var next = header[0]
    while next != 0 {
      guard add(next), pages.count <= header[1],
        let trunk = try words(
          descriptor, at: (next - 1) * pageSize, count: pageSize / MemoryLayout<UInt32>.size),
        trunk[1] <= trunk.count - 2, trunk[2..<2 + trunk[1]].allSatisfy(add)
      else { return nil }
      next = trunk[0]
    }
    return pages.count == header[1] ? pages : nil
  }

  /// - Returns: Big-endian numbers; `nil` where the file ends before.
  private static func words(_ descriptor: Int32, at offset: Int, count: Int) throws -> [Int]? {
    var words = [UInt32](repeating: 0, count: count)
    var read = 0
    repeat {
      read = words.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, offset) }
    } while read < 0 && errno == EINTR
    guard read >= 0 else {
      throw RunFiles.failure("cannot compare the clone with the store", errno)
    }
    return read == count * MemoryLayout<UInt32>.size
      ? words.map { Int(UInt32(bigEndian: $0)) } : nil
  }
}
