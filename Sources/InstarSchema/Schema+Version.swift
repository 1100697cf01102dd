extension Schema {
  /// The version of a schema: three numbers, compared from left to right.
  ///
  /// ```swift
  /// Schema.Version(1, 2, 0) < Schema.Version(1, 10, 0)   // true
  /// "\(Schema.Version(1, 2, 0))"                         // "1.2.0"
  /// ```
  public struct Version: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The first number, which counts most.
    public var major: Int
    /// The second number.
    public var minor: Int
    /// The third number.
    public var patch: Int

    /// The version with these numbers.
    public init(_ major: Int, _ minor: Int, _ patch: Int) {
      self.major = major
      self.minor = minor
      self.patch = patch
    }

    /// Reads "1.2.3". `nil` for anything that is not three non-negative numbers.
    public init?(_ text: String) {
      let parts = text.split(separator: ".", omittingEmptySubsequences: false)
      guard parts.count == 3 else { return nil }
      var numbers: [Int] = []
      for part in parts {
        guard part.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(part) else {
          return nil
        }
        numbers.append(number)
      }
      self.init(numbers[0], numbers[1], numbers[2])
    }

    /// Whether a version is older: its first different number is smaller.
    public static func < (left: Version, right: Version) -> Bool {
      (left.major, left.minor, left.patch) < (right.major, right.minor, right.patch)
    }

    /// "1.2.3".
    public var description: String { "\(major).\(minor).\(patch)" }
  }
}

/// A version is one string, "1.2.3", in every JSON and YAML document.
extension Schema.Version: Codable {
  /// Reads "1.2.3".
  ///
  /// - Throws: `DecodingError` for any other text.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    let text = try container.decode(String.self)
    guard let version = Schema.Version(text) else {
      throw DecodingError.dataCorruptedError(
        in: container, debugDescription: "'\(text)' is not a version such as 1.2.3")
    }
    self = version
  }

  /// Writes "1.2.3".
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}
