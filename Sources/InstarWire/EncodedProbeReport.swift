internal import Foundation
public import InstarSchema

/// A probe's report as JSON, and the facts that whoever passes it on needs.
///
/// The keeper makes the text, and `instarctl probe --json` prints it as it is. To read each report and write it
/// again took a sixth of the processor time of probing 10,000 small stores.
///
/// The facts are read from the text itself: a keeper that a store has taken over must not say one thing to the
/// supervisor, and another one to whoever reads the text.
///
/// Parsers differ about an object that has a key twice: the text could be about another store than the facts. So it is
/// refused. No content of a store makes the keeper write one: names in a store are values, except in `entityHashes`, a
/// dictionary, which never has two keys that are equal in Unicode. Only a keeper that a store has taken over could.
public struct EncodedProbeReport: Sendable, Codable, Hashable {
  private let facts: Facts
  /// The report as one line of JSON, without its newline.
  public let text: String

  /// What is read of each report.
  private struct Facts: Decodable, Hashable {
    let store: String
    let state: StoreState
    let error: Failure?

    struct Failure: Decodable, Hashable {
      let code: InstarError.Code
    }
  }

  /// The path of the file, as `ProbeReport.store`.
  public var store: String { facts.store }
  /// The state, as `ProbeReport.state`.
  public var state: StoreState { facts.state }
  /// The code of the report's error; `nil` if it has none.
  public var errorCode: InstarError.Code? { facts.error?.code }

  /// Encodes a report.
  public init(_ report: ProbeReport) throws(InstarError) {
    facts = Facts(
      store: report.store, state: report.state,
      error: report.error.map { Facts.Failure(code: $0.code) })
    text = String(decoding: try WireCoder.line(report).dropLast(), as: UTF8.self)
  }

  /// Reads the text, and the facts from it.
  ///
  /// - Throws: The decoder's error if the text is not one line of JSON with the facts of a report, or if it has a key
  ///   twice.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    text = try container.decode(String.self)
    guard !text.utf8.contains(where: { $0 < 0x20 }) else {
      throw DecodingError.dataCorruptedError(
        in: container, debugDescription: "a report has more than one line")
    }
    guard Self.hasUniqueKeys(text) else {
      throw DecodingError.dataCorruptedError(
        in: container, debugDescription: "a report has a key twice")
    }
    facts = try JSONDecoder().decode(Facts.self, from: Data(text.utf8))
  }

  /// Whether the outermost object has each key once, in plain letters: `"st\u006fre"` is `"store"` too.
  private static func hasUniqueKeys(_ text: String) -> Bool {
    var keys: Set<[UInt8]> = []
    var string: [UInt8] = []
    var (depth, isInString, isEscaped) = (0, false, false)
    for byte in text.utf8 {
      switch byte {
      case _ where isEscaped:
        isEscaped = false
      case UInt8(ascii: "\""):
        isInString.toggle()
        if isInString { string.removeAll(keepingCapacity: true) }
      case _ where isInString:
        isEscaped = byte == UInt8(ascii: "\\")
        if depth == 1 { string.append(byte) }
      case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
      case UInt8(ascii: ":") where depth == 1:
        let isPlain = !string.contains(UInt8(ascii: "\\"))
        guard isPlain, keys.insert(string).inserted else { return false }
      default: break
      }
    }
    return true
  }

  /// Writes the text.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }

  /// Returns the report.
  ///
  /// - Throws: `protocolViolation` if the text is not a report.
  public func report() throws(InstarError) -> ProbeReport {
    try WireCoder.message(ProbeReport.self, from: Data(text.utf8))
  }
}
