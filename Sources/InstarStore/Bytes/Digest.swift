internal import CDigest
public import Foundation

/// SHA-256 and SHA-512, as fingerprints and Core Data's metadata need them.
public enum Digest {
  /// The 32 bytes of the SHA-256 digest.
  public static func sha256(_ bytes: some Collection<UInt8>) -> Data {
    digest(of: bytes, hexadecimalDigits: 64, by: SHA256Data)
  }

  /// The 64 bytes of the SHA-512 digest.
  public static func sha512(_ bytes: some Collection<UInt8>) -> Data {
    digest(of: bytes, hexadecimalDigits: 128, by: SHA512Data)
  }

  /// Two lower-case digits for each byte.
  public static func hexadecimal(_ bytes: some Collection<UInt8>) -> String {
    var text: [UInt8] = []
    text.reserveCapacity(bytes.count * 2)
    for byte in bytes {
      text.append(digit(byte >> 4))
      text.append(digit(byte & 15))
    }
    return String(decoding: text, as: UTF8.self)
  }

  private static func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? 0x30 + value : 0x61 + value - 10
  }

  /// libmd returns the digest as text only, so it is converted back.
  private static func digest(
    of bytes: some Collection<UInt8>, hexadecimalDigits: Int,
    by function: (UnsafePointer<UInt8>?, Int, UnsafeMutablePointer<CChar>?)
      -> UnsafeMutablePointer<CChar>?
  ) -> Data {
    var text = [CChar](repeating: 0, count: hexadecimalDigits + 1)
    let contiguous = ContiguousArray(bytes)
    contiguous.withUnsafeBufferPointer { input in
      text.withUnsafeMutableBufferPointer { output in
        _ = function(input.baseAddress, input.count, output.baseAddress)
      }
    }
    var result = Data(capacity: hexadecimalDigits / 2)
    for index in stride(from: 0, to: hexadecimalDigits, by: 2) {
      result.append(value(ofDigit: text[index]) << 4 | value(ofDigit: text[index + 1]))
    }
    return result
  }

  private static func value(ofDigit digit: CChar) -> UInt8 {
    let character = UInt8(bitPattern: digit) | 0x20
    return character >= 0x61 ? character - 0x61 + 10 : character & 15
  }
}
