internal import Foundation
public import InstarSchema

/// Run identifiers: `20261121T101530Z-3f9c2a`, the time a run started (UTC) and six random hexadecimal digits.
///
/// They sort by time, and are part of file names in the state folder and beside the store.
public enum RunIdentifier {
  /// Returns a new identifier for a run that starts now.
  public static func make() -> String {
    var time = time(nil)
    var parts = tm()
    gmtime_r(&time, &parts)
    let random = UInt32.random(in: 0..<1 << 24)
    return String(
      format: "%04d%02d%02dT%02d%02d%02dZ-%06x", Int(parts.tm_year) + 1900, Int(parts.tm_mon) + 1,
      Int(parts.tm_mday), Int(parts.tm_hour), Int(parts.tm_min), Int(parts.tm_sec), random)
  }

  /// Checks an identifier from another process or a file before it becomes part of a file name: 1 to 100 ASCII letters,
  /// digits, `.`, `_` and `-`, starting with a letter or digit.
  ///
  /// - Throws: `protocolViolation`.
  public static func require(_ run: String) throws(InstarError) {
    let isSafe = run.utf8.allSatisfy { isLetterOrDigit($0) || "-_.".utf8.contains($0) }
    guard isSafe, run.utf8.count <= 100, let first = run.utf8.first, isLetterOrDigit(first) else {
      throw InstarError(
        .protocolViolation, "cannot use run identifier '\(run.prefix(100))'",
        cause:
          "not 1 to 100 letters, digits, '.', '_' and '-' that begin with a letter or digit",
        next: "to list the runs with their identifiers, run: instarctl history")
    }
  }

  private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "a")...UInt8(ascii: "z"):
      true
    default: false
    }
  }
}
