import Foundation
import InstarDaemon
import Testing

/// `journalctl -x` explains each message by its id: the packaged catalog, the events of the daemon.
@Suite struct CatalogTests {
  /// The entries of the catalog: the id, the lines of its header, and what is below.
  private static func entries() throws -> [(id: String, header: [String], text: String)] {
    let top = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
    let catalog = try String(
      contentsOf: top.appendingPathComponent("packaging/debian/instar.catalog"), encoding: .utf8)
    return catalog.components(separatedBy: "\n-- ").dropFirst().map { entry in
      let parts = entry.components(separatedBy: "\n\n")
      let lines = parts[0].components(separatedBy: "\n")
      return (lines[0], Array(lines.dropFirst()), parts.dropFirst().joined(separator: "\n\n"))
    }
  }

  @Test("the journal's catalog explains every event, and nothing else")
  func completeness() throws {
    let ids = try Self.entries().map(\.id)
    #expect(ids.count == Set(ids).count)
    #expect(Set(ids) == Set(EventKind.allCases.map(\.messageID)))
  }

  @Test("every explanation has a subject, points to the manual, and names only our fields")
  func shape() throws {
    for entry in try Self.entries() {
      #expect(entry.header.contains { $0.hasPrefix("Subject: ") })
      #expect(entry.header.contains("Documentation: man:instard(8)"))
      #expect(!entry.text.trimmingCharacters(in: .whitespacesAndNewlines).isEmpty)
      let fields = entry.text.components(separatedBy: "@").enumerated()
        .filter { $0.offset % 2 == 1 }.map(\.element)
      for field in fields { #expect(field.wholeMatch(of: /INSTAR_[A-Z_]+/) != nil, "\(field)") }
    }
  }
}
