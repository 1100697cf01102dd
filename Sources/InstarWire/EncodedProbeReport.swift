internal import Foundation
public import InstarSchema

/// A probe's report as JSON, beside the facts that whoever passes it on needs.
///
/// The keeper makes the text, and `instarctl probe --json` prints it as it is. To read each report and write it
/// again took a sixth of the processor time of probing 10,000 small stores.
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
