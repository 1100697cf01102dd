internal import Foundation
public import InstarSchema

/// A probe's report as JSON, with the facts that those who pass it on act on.
///
/// The keeper makes the text, and `instarctl probe --json` prints it as it is. Reading each report and writing it
/// again was a fifth of the time that 10,000 small stores took.
public struct EncodedProbeReport: Sendable, Codable, Hashable {
  /// The path of the file, as `ProbeReport.store`.
  public let store: String
  /// The state, as `ProbeReport.state`.
  public let state: StoreState
  /// The code of the report's error; left out if it has none.
  public let errorCode: InstarError.Code?
  /// The report as one line of JSON, without its newline.
  public let text: String

  /// Encodes a report.
  public init(_ report: ProbeReport) throws(InstarError) {
    store = report.store
    state = report.state
    errorCode = report.error?.code
    text = String(decoding: try WireCoder.line(report).dropLast(), as: UTF8.self)
  }

  /// Returns the report.
  ///
  /// - Throws: `protocolViolation` if the text is not a report.
  public func report() throws(InstarError) -> ProbeReport {
    try WireCoder.message(ProbeReport.self, from: Data(text.utf8))
  }
}
