import Foundation
import Glibc
import InstarSchema
import InstarSupervisor
import InstarTestSupport
import Testing

@Suite("The quarantine on disk")
struct QuarantineTests {
  private let folder: TemporaryFolder
  private let state: StateFolder

  init() throws {
    folder = try TemporaryFolder()
    state = try StateFolder(path: folder.path("state"))
  }

  private func record(_ store: String) -> QuarantineRecord {
    var record = QuarantineRecord(
      store: store, file: -7, failures: 3,
      plugins: [RolloutRecord.PluginFile(path: "/p/a.so", bytes: 1, modified: 2)])
    record.error = InstarError(.stageFailed, "cannot migrate '\(store)'", cause: "14 rows")
    record.verdict = QuarantineRecord.Verdict(state: .behind)
    return record
  }

  @Test("a quarantine outlasts the daemon, until it ends")
  func kept() throws {
    let records = [record("/srv/a.store"), record("/srv/b.store")]
    for record in records { try state.setQuarantine(record) }
    let next = try StateFolder(path: state.path)
    #expect(try next.quarantineRecords().records == records)
    try next.endQuarantine(of: ["/srv/a.store", "/srv/none.store"])
    #expect(try next.quarantineRecords().records == [records[1]])
  }

  @Test("a damaged record is reported with its file, and the others are read")
  func damaged() throws {
    try state.setQuarantine(record("/srv/a.store"))
    try folder.write("{", to: "state/quarantine/1.json")
    let (records, unreadable) = try state.quarantineRecords()
    #expect(records == [record("/srv/a.store")])
    #expect(unreadable.map(\.next) == ["run: rm '\(state.path)/quarantine/1.json'"])
  }
}
