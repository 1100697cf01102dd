import Glibc
import InstarSchema

/// The share of a machine that one run takes.
///
/// A run on a small store waits for the disk most of its time, so four of them take the place of one run on a large
/// store, which is work for a processor and a disk of its own.
public enum RunWeight: Int, Sendable, Hashable {
  case small = 1
  case large = 4

  private static let smallStoreBytes = 16 << 20

  /// - Parameter storeBytes: The size of the store; `nil`, where it is not known, counts as large.
  public init(storeBytes: Int64?) {
    self = storeBytes.map { $0 <= Self.smallStoreBytes } == true ? .small : .large
  }

  /// Reads the size of the file. One that is missing is small: its run ends at once.
  public init(ofStore path: String) {
    self.init(storeBytes: Int64(stat(of: path)?.st_size ?? 0))
  }
}
