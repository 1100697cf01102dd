import Foundation
import Glibc
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarTestSupport
import InstarWire
import Testing

@testable import InstarDaemon

@Suite(
  "What owners may do with holds and runs",
  .enabled(if: geteuid() == 0, "giving files away needs root"))
struct ClientRecordsTests {
  private static let alice: UInt32 = 4001
  private static let bob: UInt32 = 4002
  private let folder: TemporaryFolder
  private let state: StateFolder

  init() throws {
    folder = try TemporaryFolder()
    state = try StateFolder(path: folder.path("state"))
    for (name, owner) in [("alice", Self.alice), ("bob", Self.bob)] {
      try FileManager.default.createDirectory(
        atPath: folder.path(name), withIntermediateDirectories: false)
      try folder.write(name, to: "\(name)/a.store")
      try #require(chown(folder.path(name), owner, owner) == 0)
      try #require(chown(folder.path("\(name)/a.store"), owner, owner) == 0)
    }
  }

  private var alices: String { folder.path("alice/a.store") }
  private var bobs: String { folder.path("bob/a.store") }

  private func records(of user: UInt32, groups: [UInt32] = []) -> ClientRecords {
    ClientRecords(
      stateFolder: state,
      client: ControlClient(
        UnixSocket.Peer(pid: 1, uid: user, groups: groups), adminGroup: 900))
  }

  @Test("an owner releases its own store from any hold, and nobody else's; an administrator all")
  func release() throws {
    let own = records(of: Self.alice)
    try state.hold(alices, by: "root (0)", why: "auditing")
    try state.hold(bobs, by: "root (0)", why: "auditing")
    #expect(try own.holds().holds.map(\.store) == [alices])
    #expect(try own.release(alices)?.store == alices)
    #expect(try instarError { _ = try own.release(bobs) }.code == .notPermitted)
    #expect(try state.hold(on: bobs) != nil)
    let admin = records(of: 4003, groups: [900])
    #expect(try admin.holds().holds.map(\.store) == [bobs])
    #expect(try admin.release(bobs) != nil)
  }

  @Test("an owner is told why a hold of an own store fails, and nothing about those of others")
  func failedHold() throws {
    let own = records(of: Self.alice)
    _ = try own.hold(alices, why: "auditing")
    #expect(try instarError { _ = try own.hold(alices, why: "again") }.code == .heldStore)
    let missing = folder.path("alice/none.store")
    #expect(try instarError { _ = try own.hold(missing, why: "mine") }.code == .missingStore)
    for path in [bobs, folder.path("bob/none.store")] {
      #expect(try instarError { _ = try own.hold(path, why: "mine") }.code == .notPermitted)
    }
  }

  @Test("a hold is not ended in the place of another one")
  func otherHold() throws {
    let own = records(of: Self.alice)
    let hold = try state.hold(alices, by: "root (0)", why: "auditing")
    #expect(try own.release(alices, only: "of another hold") == nil)
    #expect(try state.hold(on: alices) == hold)
    #expect(try own.release(alices, only: hold.id) == hold)
    #expect(try state.hold(on: alices) == nil)
  }

  @Test("a folder that became a link to another user's gives no right to that user's store")
  func replacedFolder() throws {
    let own = records(of: Self.alice)
    try #require(symlink(folder.path("bob"), folder.path("alice/link")) == 0)
    let path = folder.path("alice/link/a.store")
    let before = try lastChangeOfHolds()
    #expect(try instarError { _ = try own.hold(path, why: "mine") }.code == .notPermitted)
    #expect(try state.holds().holds == [])
    #expect(try lastChangeOfHolds() == before)
    try state.hold(bobs, by: "bob (4002)", why: "auditing")
    let refused = try instarError { _ = try own.hold(path, why: "mine") }
    #expect(refused.code == .notPermitted && !refused.description.contains("auditing"))
    #expect(try instarError { _ = try own.release(path) }.code == .notPermitted)
    let unread = try instarError { _ = try own.history(Manager.RunFilter(store: path)) { true } }
    #expect(unread.code == .notPermitted)
    #expect(try state.hold(on: bobs) != nil)
  }

  @Test("a hold stays on the owner's store when its folder becomes a link to another user's")
  func laterLink() throws {
    let own = records(of: Self.alice)
    let hold = try own.hold(alices, why: "mine")
    try #require(rename(folder.path("alice"), folder.path("moved")) == 0)
    try #require(symlink(folder.path("bob"), folder.path("alice")) == 0)
    try #require(lchown(folder.path("alice"), Self.alice, Self.alice) == 0)
    #expect(try state.hold(on: bobs) == nil)
    #expect(try state.hold(on: alices) == nil)
    #expect(try instarError { _ = try own.hold(alices, why: "mine") }.code == .notPermitted)
    #expect(try own.release(folder.path("moved/a.store")) == hold)
    #expect(try state.holds().holds == [])
  }

  private func lastChangeOfHolds() throws -> Date? {
    try FileManager.default.attributesOfItem(atPath: state.holdsFolder)[.modificationDate] as? Date
  }

  @Test("a store without a hold is not released for another user either")
  func releaseOfNone() throws {
    #expect(try records(of: Self.bob).release(bobs) == nil)
    #expect(try instarError { _ = try records(of: Self.alice).release(bobs) }.code == .notPermitted)
  }

  @Test("a held store that its owner moved is still released by the owner")
  func moved() throws {
    let own = records(of: Self.alice)
    _ = try own.hold(alices, why: "auditing")
    let other = folder.path("alice/b.store")
    try #require(rename(alices, other) == 0)
    #expect(try instarError { _ = try records(of: Self.bob).release(other) }.code == .notPermitted)
    #expect(try own.release(other)?.store == alices)
  }

  @Test("an owner gets the newest of its own runs, also when those of others are newer")
  func newestRuns() throws {
    for number in 0..<6 {
      try state.append(
        RunReport(
          run: "R\(number)", store: number < 4 ? alices : bobs, result: .migrated,
          startedAt: Double(number)))
    }
    let found = try records(of: Self.alice).history(Manager.RunFilter(limit: 2)) { true }
    #expect(try state.reports(of: found.runs).map(\.run) == ["R2", "R3"])
    // By now other runs are at their places.
    try folder.write("", to: "state/ledger/ledger.jsonl")
    for number in 6..<12 {
      try state.append(
        RunReport(run: "R\(number)", store: bobs, result: .migrated, startedAt: Double(number)))
    }
    #expect(try state.reports(of: found.runs).isEmpty)
  }

  @Test("a reader who is so slow that old runs are removed gets the others")
  func slowReader() throws {
    state.setLedgerSize(1)
    for number in 0..<5 {
      var report = RunReport(
        run: "R\(number)", store: alices, result: .migrated, startedAt: Double(number))
      // An old run is kept while its backup exists.
      if number == 1 { report.backup = try folder.write("", to: "alice/backup") }
      try state.append(report)
    }
    let found = try records(of: Self.alice).history(Manager.RunFilter()) { true }
    #expect(found.runs.count == 5)
    #expect(try state.removeOldRuns(keeping: 1) == 2)
    #expect(try state.reports(of: found.runs).map(\.run) == ["R1", "R3", "R4"])
  }

  @Test("an owner reads the runs of its own stores, an administrator those of all")
  func history() throws {
    for (number, store) in [alices, bobs, folder.path("gone.store")].enumerated() {
      try state.append(
        RunReport(run: "R\(number)", store: store, result: .migrated, startedAt: Double(number)))
    }
    func runs(_ records: ClientRecords, _ filter: Manager.RunFilter) throws -> [String] {
      try state.reports(of: try records.history(filter) { true }.runs).map(\.run)
    }
    #expect(try runs(records(of: Self.alice), Manager.RunFilter()) == ["R0"])
    #expect(try runs(records(of: Self.alice), Manager.RunFilter(store: alices, limit: 1)) == ["R0"])
    #expect(try runs(records(of: 0), Manager.RunFilter()) == ["R0", "R1", "R2"])
    let refused = try instarError {
      _ = try records(of: Self.alice).history(Manager.RunFilter(store: bobs)) { true }
    }
    #expect(refused.code == .notPermitted && refused.cause.contains("4001 does not own a watched"))
    #expect(try runs(records(of: 0), Manager.RunFilter(limit: -1)) == [])
    let own = records(of: Self.alice)
    #expect(try own.history(Manager.RunFilter()) { false }.runs.isEmpty)
    let unwatched = try instarError {
      _ = try own.history(Manager.RunFilter(store: alices)) { false }
    }
    #expect(unwatched.code == .notPermitted)
  }
}
