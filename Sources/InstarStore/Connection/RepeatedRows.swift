internal import CDatabase
internal import Glibc
package import InstarSchema

/// The rows of a statement whose values may repeat, by hashes of these values: 16 bytes of memory for each row that was
/// read.
///
/// States: reading ──end of the statement──▶ found. Before that there are no pages.
package final class RepeatedRows {
  private let statement: SQLStatement
  private let hashKeys = (0..<2).map { _ in UInt64.random(in: 1 ... .max) | 1 }
  private var found = instar_row_hashes()
  private var isComplete = false
  /// How many of the found rows were taken.
  private var taken = 0

  /// - Parameter statement: Selects the key of each row, and then the values to compare. It is bound and not stepped.
  package init(_ statement: SQLStatement) { self.statement = statement }

  deinit { free(found.rows) }

  /// Reads more rows. Call it where the connection may be used.
  ///
  /// - Returns: Whether there may be more.
  /// - Throws: The error of the statement, which is then reset.
  package func read(atMost limit: Int) throws(InstarError) -> Bool {
    let isMore = try statement.step { instar_hash_rows($0, limit, hashKeys, &found) }
    if isMore { return true }
    instar_keep_repeated(&found)
    isComplete = true
    return false
  }

  /// Ends the reading.
  package func close() { statement.reset() }

  /// How many rows have a hash that another row has too.
  package var count: Int { isComplete ? found.count : 0 }

  /// Returns the keys of the next rows, in whole groups of equal hashes: as many groups as have no more than `size`
  /// rows together, but at least one. All rows with equal values are in one group; NULL is equal to nothing. Groups
  /// come in the order of their lowest keys.
  ///
  /// - Returns: An empty page at the end.
  package func nextPage(of size: Int) -> [Int64] {
    guard isComplete else { return [] }
    let rows = UnsafeBufferPointer(start: found.rows, count: found.count)
    let start = taken
    while taken < rows.count {
      let end = rows[taken...].firstIndex { $0.hash != rows[taken].hash } ?? rows.count
      if taken > start, end - start > size { break }
      taken = end
    }
    return rows[start..<taken].map(\.key)
  }
}
