import Foundation
import InstarLinux
import InstarSchema
import InstarWire

/// Where the ledger has the report of a run.
public struct RecordedRun: Sendable {
  let run: String
  /// The path of its store, as a `StorePath` has it.
  public let store: String
  let place: LedgerFile.Place
  /// The copy of its backup.
  let copy: String?

  /// - Returns: `nil` where the line is not the report of the run: it was removed since.
  func report(in line: Data) -> RunReport? {
    Self.anyReport(in: line).flatMap { $0.run == run && $0.store == store ? $0 : nil }
  }

  /// - Returns: `nil` for a line that cannot be decoded.
  static func anyReport(in line: Data) -> RunReport? {
    (try? WireCoder.message(RunReport.self, from: line))?.plausible
  }
}
