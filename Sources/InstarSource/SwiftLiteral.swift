import Foundation

/// Swift literals of values.
enum SwiftLiteral {
  /// Returns a string literal, with quotes, backslashes, line breaks and control characters escaped.
  static func string(_ text: String) -> String {
    var literal = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": literal += "\\\""
      case "\\": literal += "\\\\"
      case "\n": literal += "\\n"
      case "\r": literal += "\\r"
      case "\t": literal += "\\t"
      case _
      where scalar.properties.generalCategory == .control
        || scalar.properties.generalCategory == .format
        || scalar.properties.generalCategory == .lineSeparator
        || scalar.properties.generalCategory == .paragraphSeparator:
        literal += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
      default: literal.unicodeScalars.append(scalar)
      }
    }
    return literal + "\""
  }

  /// Returns a floating-point literal, or `.nan` or `.infinity`.
  static func real(_ value: Double) -> String {
    if value.isNaN { return ".nan" }
    if value.isInfinite { return value < 0 ? "-.infinity" : ".infinity" }
    return "\(value)"
  }

  static func bytes(_ bytes: [UInt8], type: String) -> String {
    guard !bytes.isEmpty else { return "\(type)()" }
    return bytes.count <= 16
      ? "\(type)([\(bytes.map { "0x" + hexadecimal($0) }.joined(separator: ", "))])"
      : "\(type)(base64Encoded: \(string(Data(bytes).base64EncodedString())))!"
  }

  private static func hexadecimal(_ byte: UInt8) -> String {
    let digits = String(byte, radix: 16, uppercase: true)
    return digits.count == 1 ? "0" + digits : digits
  }
}
