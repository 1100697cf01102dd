internal import CCompression
internal import CDigest
internal import Glibc
package import InstarSchema

/// Files that are compressed with Zstandard, as the command `zstd` reads and writes them. They are never whole in
/// memory.
package enum PackedFile {
  /// Replaces the contents of `target`, an existing file, by those of `source`, packed.
  ///
  /// - Throws: `noSpace` or `unreadableStore`. Follows no symbolic link.
  package static func pack(_ source: String, to target: String) throws(InstarError) {
    let what = "cannot compress '\(source)'"
    let input = try open(source, O_RDONLY, what)
    defer { close(input) }
    let output = try open(target, O_WRONLY | O_TRUNC, what)
    defer { close(output) }
    let reason = instar_pack_file(input, output)
    guard reason == 0 else { throw failure(what, reason) }
  }

  /// Replaces the contents of `target`, an existing file, by those of the packed file `source`.
  ///
  /// - Parameter limit: The most bytes that may come out.
  /// - Throws: `noSpace`, `unreadableStore`; `damagedBackup` where the file is damaged or has more bytes in it.
  package static func unpack(
    _ source: String, to target: String, limit: Int64
  ) throws(InstarError) {
    let what = "cannot unpack '\(source)'"
    let output = try open(target, O_WRONLY | O_TRUNC, what)
    defer { close(output) }
    try unpack(source, limit, what) { bytes in
      var rest = bytes
      while !rest.isEmpty {
        let count = write(output, rest.baseAddress, rest.count)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return count < 0 ? errno : EIO }
        rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(count))
      }
      return 0
    }
  }

  /// Returns the `FileDigest` and the number of the bytes in a packed file.
  ///
  /// - Parameter limit: The most bytes that may come out.
  /// - Throws: `unreadableStore`; `damagedBackup` where the file is damaged or has more bytes in it.
  package static func digest(
    of source: String, limit: Int64
  ) throws(InstarError) -> (digest: String, bytes: Int64) {
    let state = XXH3_createState()
    defer { XXH3_freeState(state) }
    guard XXH3_128bits_reset(state) == 0 else {
      throw failure("cannot read '\(source)'", ENOMEM)
    }
    var count: Int64 = 0
    try unpack(source, limit, "cannot unpack '\(source)'") { bytes in
      XXH3_128bits_update(state, bytes.baseAddress, bytes.count)
      count += Int64(bytes.count)
      return 0
    }
    return (FileDigest.text(of: state), count)
  }

  /// What takes the unpacked bytes, as C carries it.
  private struct Receiver {
    let take: (UnsafeRawBufferPointer) -> Int32
    /// The bytes that may still come out.
    var left: Int64
  }

  /// - Parameter take: 0, or an `errno` that ends the work.
  private static func unpack(
    _ source: String, _ limit: Int64, _ what: String,
    take: (UnsafeRawBufferPointer) -> Int32
  ) throws(InstarError) {
    let input = try open(source, O_RDONLY, what)
    defer { close(input) }
    let result = withoutActuallyEscaping(take) { take in
      var receiver = Receiver(take: take, left: limit)
      return withUnsafeMutablePointer(to: &receiver) { context in
        instar_unpack_file(
          input,
          { context, bytes, count in
            guard let receiver = context?.assumingMemoryBound(to: Receiver.self) else {
              return EINVAL
            }
            receiver.pointee.left -= Int64(count)
            // A few bytes of a forged file may stand for more than the disk has room for.
            guard receiver.pointee.left >= 0 else { return Int32(instar_unpack_too_long) }
            return receiver.pointee.take(UnsafeRawBufferPointer(start: bytes, count: count))
          }, context)
      }
    }
    switch result {
    case 0: return
    case Int32(instar_unpack_malformed):
      throw InstarError(
        .damagedBackup, what, cause: "the file is not what zstd wrote: its content is damaged",
        next: adviceOnDamage)
    case Int32(instar_unpack_truncated):
      throw InstarError(
        .damagedBackup, what, cause: "the end of the compressed file is missing",
        next: adviceOnDamage)
    case Int32(instar_unpack_too_long):
      throw InstarError(
        .damagedBackup, what, cause: "the compressed file has more than \(limit) bytes in it",
        next: adviceOnDamage)
    default: throw failure(what, result)
    }
  }

  private static let adviceOnDamage = "to find a sound backup, run: instarctl backups verify"

  private static func open(_ path: String, _ flags: Int32, _ what: String) throws(InstarError)
    -> Int32
  {
    let descriptor = Glibc.open(path, flags | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure(what, errno) }
    return descriptor
  }

  private static func failure(_ what: String, _ reason: Int32) -> InstarError {
    InstarError(
      InstarError.isFull(reason) ? .noSpace : .unreadableStore, what,
      cause: String(cString: strerror(reason)))
  }
}
