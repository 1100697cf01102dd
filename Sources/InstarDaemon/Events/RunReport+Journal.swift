import InstarSchema
import InstarWire

extension RunReport {
  /// The longest report in the journal. journald stores far larger fields, but a journal holds the reports of
  /// thousands of runs.
  static let journalLimitBytes = 32 << 10
  private static let causeLimitBytes = 4 << 10

  /// The report as JSON, for `INSTAR_REPORT`. Of a longer one, the longest lists are left out, and its notes say so.
  var journalText: String? {
    if let text = text(atMost: Self.journalLimitBytes) { return text }
    var short = self
    var missing: [String] = []
    func shorten(_ name: String, _ clear: (inout RunReport) -> Void) -> String? {
      clear(&short)
      missing.append(name)
      var noted = short
      noted.notes.append(
        "left out here: \(missing.joined(separator: ", ")); the whole report: instarctl history "
          + "--json \(CommandText.quoted(store))")
      return noted.text(atMost: Self.journalLimitBytes)
    }
    return shorten("relationships") { $0.relationships = [] }
      ?? shorten("entities") { $0.entities = [] }
      ?? shorten("manifest") { $0.manifest = nil }
      ?? shorten("stages") { $0.stages = [] }
      ?? shorten("earlier notes") { $0.notes = [] }
      ?? shorten("error") { report in
        report.error = report.error.map {
          InstarError(
            $0.code, $0.what, store: $0.store, cause: String($0.cause.prefix(Self.causeLimitBytes)))
        }
      }
  }

  private func text(atMost limit: Int) -> String? {
    // Without its report the entry is still of use.
    guard let line = try? WireCoder.line(self).dropLast(), line.count <= limit else { return nil }
    return String(decoding: line, as: UTF8.self)
  }
}
