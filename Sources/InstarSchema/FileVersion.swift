package import Glibc

/// Which file it is, its size and when it was last written: equal as long as nobody has replaced or written the file.
package struct FileVersion: Sendable, Hashable {
  package let identity: FileIdentity
  package let sizeBytes: Int64
  /// Since 1970.
  package let modifiedNanoseconds: Int64

  package init(identity: FileIdentity, sizeBytes: Int64, modifiedNanoseconds: Int64) {
    self.identity = identity
    self.sizeBytes = sizeBytes
    self.modifiedNanoseconds = modifiedNanoseconds
  }

  package init(_ status: stat) {
    self.init(
      identity: FileIdentity(status), sizeBytes: Int64(status.st_size),
      modifiedNanoseconds: status.st_mtim.nanoseconds)
  }
}

extension timespec {
  /// The whole time in nanoseconds.
  package var nanoseconds: Int64 { Int64(tv_sec) &* 1_000_000_000 &+ Int64(tv_nsec) }
}
