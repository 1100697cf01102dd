import CSystemd
import Glibc
public import InstarSchema

/// The system's journal, entry by entry, with fields (sd_journal_sendv(3)).
public enum Journal {
  /// Whether there is a journal. Without one `send` succeeds and the entry is lost: the library reports no error.
  public static var isAvailable: Bool { access("/run/systemd/journal/socket", W_OK) == 0 }

  /// Whether standard error is a stream into the journal, as systemd sets it up for a service (systemd.exec(5),
  /// `$JOURNAL_STREAM`).
  public static var receivesStandardError: Bool {
    guard let stream = getenv("JOURNAL_STREAM") else { return false }
    var status = stat()
    guard fstat(STDERR_FILENO, &status) == 0 else { return false }
    return String(cString: stream) == "\(status.st_dev):\(status.st_ino)"
  }

  /// Writes one entry.
  ///
  /// - Parameter fields: Names are capital letters, digits and underscores, and begin with a letter. Values are any
  ///   text, newlines included.
  /// - Throws: `internalError` where a name is not of that form, or the entry cannot be sent.
  public static func send(fields: [(name: String, value: String)]) throws(InstarError) {
    var bytes: [UInt8] = []
    var lengths: [Int] = []
    for (name, value) in fields {
      guard isFieldName(name) else {
        throw InstarError(
          .internalError, "cannot write to the journal",
          cause: "'\(name)' is not a valid field name")
      }
      let start = bytes.count
      bytes.append(contentsOf: name.utf8)
      bytes.append(UInt8(ascii: "="))
      bytes.append(contentsOf: value.utf8)
      lengths.append(bytes.count - start)
    }
    let result = bytes.withUnsafeMutableBytes { buffer -> Int32 in
      var start = 0
      let vector = lengths.map { length in
        defer { start += length }
        return iovec(iov_base: buffer.baseAddress.map { $0 + start }, iov_len: length)
      }
      return sd_journal_sendv(vector, Int32(clamping: vector.count))
    }
    guard result >= 0 else {
      throw InstarError(
        .internalError, "cannot write to the journal", cause: String(cString: strerror(-result)))
    }
  }

  /// Whether the journal keeps a field of that name; it drops others without an error.
  public static func isFieldName(_ name: String) -> Bool {
    guard let first = name.utf8.first, name.utf8.count <= 64 else { return false }
    return (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(first)
      && name.utf8.allSatisfy {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains($0)
          || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || $0 == UInt8(ascii: "_")
      }
  }
}

/// What `MONOTONIC_USEC=` wants: CLOCK_MONOTONIC in microseconds.
func monotonicMicroseconds() -> Int64 {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
}
