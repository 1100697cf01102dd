internal import CDigest
internal import Glibc
package import InstarSchema

/// XXH3-128 of a whole file: finds damage and mistaken files. It does not protect from somebody who forges a file.
package enum FileDigest {
  /// Returns "xxh3-128:" and 32 hexadecimal digits.
  ///
  /// - Throws: `unreadableStore`. Follows no symbolic link.
  package static func ofFile(_ path: String) throws(InstarError) -> String {
    let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure(path) }
    defer { close(descriptor) }
    return try ofFile(descriptor, path)
  }

  /// The same of an open file, which stays open. Its position does not matter and does not change.
  ///
  /// - Parameter path: How errors name the file.
  package static func ofFile(_ descriptor: Int32, _ path: String) throws(InstarError) -> String {
    var (high, low): (UInt64, UInt64) = (0, 0)
    guard instar_hash_file(descriptor, &high, &low) == 0 else { throw failure(path) }
    return text(high, low)
  }

  /// Returns the digest of the bytes that were added to a state, as `ofFile` does.
  static func text(of state: OpaquePointer?) -> String {
    let digest = XXH3_128bits_digest(state)
    return text(digest.high64, digest.low64)
  }

  /// The canonical form of XXH3: the upper half first, each as a big-endian number.
  private static func text(_ high: UInt64, _ low: UInt64) -> String {
    let bytes = [high, low].flatMap { half in
      stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: half >> UInt64($0)) }
    }
    return "xxh3-128:" + Digest.hexadecimal(bytes)
  }

  private static func failure(_ path: String) -> InstarError {
    InstarError(
      .unreadableStore, "cannot read '\(path)'", cause: String(cString: strerror(errno)),
      next: "run: ls -l \(CommandText.quoted(path))")
  }
}
