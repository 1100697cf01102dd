import Foundation
import InstarCoordinator
import InstarWire
import Testing

@testable import InstarDaemon

/// `journalctl -x` explains each message by its id: the packaged catalog, the events of daemon and coordinator.
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

  @Test("instard(8) lists every field that an event can have, and no other")
  func fields() throws {
    let top = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
    let page = try String(
      contentsOf: top.appending(path: "packaging/man/instard.8.man"), encoding: .utf8)
    let listed = page.matches(of: /\.TP\n\.B (INSTAR_[A-Z_]+)\n/).map { String($0.1) }
    var written: Set<String> = []
    let folder = top.appending(path: "Sources/InstarDaemon/Events")
    for file in try FileManager.default.contentsOfDirectory(
      at: folder, includingPropertiesForKeys: nil)
    {
      let source = try String(contentsOf: file, encoding: .utf8)
      written.formUnion(source.matches(of: /"(INSTAR_[A-Z_]+)"/).map { String($0.1) })
    }
    #expect(listed.count == Set(listed).count)
    #expect(Set(listed) == written)
  }

  @Test("the journal's catalog explains every event, and nothing else")
  func completeness() throws {
    let ids = try Self.entries().map(\.id)
    #expect(ids.count == Set(ids).count)
    let events = EventKind.allCases.map(\.messageID) + CoordinatorEvent.allCases.map(\.messageID)
    #expect(Set(events).count == events.count)
    #expect(Set(ids) == Set(events))
  }

  @Test("instar-coordinator(8) lists every event, and none has the name of one of the daemon's")
  func coordinatorEvents() throws {
    let top = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
    let page = try String(
      contentsOf: top.appending(path: "packaging/man/instar-coordinator.8.man"), encoding: .utf8)
    let listed = page.replacing("\\-", with: "-").matches(of: /\n\.B(?:R)? ([a-z-]+)(?: ,)?/)
      .map { String($0.1) }
    let names = CoordinatorEvent.allCases.map(\.rawValue)
    #expect(Set(listed).isSuperset(of: names))
    #expect(Set(names).isDisjoint(with: EventKind.allCases.map(\.rawValue)))
  }

  @Test("every explanation has a subject, points to the manual, and names only our fields")
  func shape() throws {
    for entry in try Self.entries() {
      #expect(entry.header.contains { $0.hasPrefix("Subject: ") })
      let isCoordinators = CoordinatorEvent.allCases.contains { $0.messageID == entry.id }
      let page = isCoordinators ? "instar-coordinator" : "instard"
      #expect(entry.header.contains("Documentation: man:\(page)(8)"))
      #expect(!entry.text.trimmingCharacters(in: .whitespacesAndNewlines).isEmpty)
      let fields = entry.text.components(separatedBy: "@").enumerated()
        .filter { $0.offset % 2 == 1 }.map(\.element)
      for field in fields { #expect(field.wholeMatch(of: /INSTAR_[A-Z_]+/) != nil, "\(field)") }
    }
  }
}
