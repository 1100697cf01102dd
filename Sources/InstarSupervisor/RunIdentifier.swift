import Foundation

/// The names of runs: `20261121T101530Z-3f9c2a`, the time at which a run began (UTC) and six random
/// digits. They sort by time and can be names of files.
public enum RunIdentifier {
  public static func make() -> String {
    var time = time(nil)
    var parts = tm()
    gmtime_r(&time, &parts)
    let random = UInt32.random(in: 0..<1 << 24)
    return String(
      format: "%04d%02d%02dT%02d%02d%02dZ-%06x", Int(parts.tm_year) + 1900, Int(parts.tm_mon) + 1,
      Int(parts.tm_mday), Int(parts.tm_hour), Int(parts.tm_min), Int(parts.tm_sec), random)
  }

  /// Whether a name that came from elsewhere can be part of a file's name.
  static func isSafe(_ run: String) -> Bool {
    guard let first = run.utf8.first, run.utf8.count <= 100 else { return false }
    func isLetterOrDigit(_ byte: UInt8) -> Bool {
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "a")...UInt8(ascii: "z"):
        true
      default: false
      }
    }
    return isLetterOrDigit(first)
      && run.utf8.allSatisfy { isLetterOrDigit($0) || $0 == 0x2D || $0 == 0x5F || $0 == 0x2E }
  }
}
