import Foundation
import Glibc
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarTestSupport
import InstarWire
import Testing

@Suite("Holds in the state folder")
struct HoldTests {
  let folder: TemporaryFolder
  let state: StateFolder

  init() throws {
    folder = try TemporaryFolder()
    state = try StateFolder(path: folder.path("state"))
    try folder.write("a", to: "a.store")
  }

  private var store: String { folder.path("a.store") }

  @Test("another process sees a hold until it is released")
  func lifetime() throws {
    let other = StateFolder(reading: state.path)
    #expect(try other.hold(on: store) == nil)
    let hold = try state.hold(store, by: "anna (1000)", why: "auditing")
    #expect(try other.hold(on: store) == hold)
    #expect(try other.hold(on: folder.path("b.store")) == nil)
    #expect(hold.sentence.contains("anna (1000)") && hold.sentence.hasSuffix(": auditing"))
    #expect(try state.release(store) == hold)
    #expect(try other.hold(on: store) == nil)
    #expect(try state.release(store) == nil)
    #expect(folder.names("state/holds") == [])
  }

  @Test("a store has one hold at a time, and a missing store none")
  func refused() throws {
    try state.hold(store, by: "anna", why: "auditing")
    let again = try instarError { try state.hold(store, by: "ben", why: "testing") }
    #expect(again.code == .heldStore && again.cause.contains("auditing"))
    let missing = try instarError {
      try state.hold(folder.path("b.store"), by: "ben", why: "testing")
    }
    #expect(missing.code == .missingStore)
  }

  @Test(
    "a recovery ends the hold of a restore only if the store is as before",
    arguments: [RecoveryReport.Outcome.discarded, .finished], [false, true])
  func recoveredRestore(outcome: RecoveryReport.Outcome, isBackupKept: Bool) throws {
    var phase = PhaseRecord(run: "R2", store: store, phase: .cutover, startedAt: 1)
    phase.restoredRun = "R1"
    phase.backup = folder.path(".instar/a.store.R2.backup")
    let journal = try RunJournal.start(run: phase.run, store: store, in: state)
    try journal.enter(phase)
    journal.unlock()
    let hold = try state.hold(store, by: "anna", why: "restored by run R2", run: phase.run)

    _ = try RunJournal.recover(phase, in: state, recordedAs: StorePath(store)) {
      phase throws(InstarError) in
      var report = RecoveryReport(run: phase.run, store: phase.store, outcome: outcome)
      if isBackupKept { report.backup = phase.backup }
      return report
    }
    let isDiscarded = outcome == .discarded
    #expect(try state.hold(on: store) == (isDiscarded && !isBackupKept ? nil : hold))
    let report = try #require(try state.history().reports.last)
    #expect(report.result == (isDiscarded ? .failed : .restored))
    let command = "run: instarctl release '\(store)'"
    #expect(report.notes.contains { $0.hasSuffix(command) } == (isDiscarded && isBackupKept))
  }

  @Test(
    "the command of a refusal names the state folder once, however often the error is completed")
  func completedTwice() {
    let once = state.completing("run: instarctl release '\(store)'", store: store)
    #expect(once == "run: instarctl release '\(store)' --state-dir '\(state.path)'")
    #expect(state.completing(once, store: store) == once)
  }

  @Test("who has no right to a store does not learn of its hold")
  func withoutRight() throws {
    try state.hold(store, by: "anna", why: "auditing")
    let refused = try instarError {
      try state.hold(store, by: "ben", why: "testing") { _, _ throws(InstarError) in
        throw InstarError(.notPermitted, "cannot hold", cause: "the store is anna's")
      }
    }
    #expect(refused.code == .notPermitted)
    #expect(try state.holds().holds.map(\.by) == ["anna"])
  }

  @Test("a hold is on the file to which the user has a right, also if its folder is replaced")
  func replacedFolder() throws {
    try FileManager.default.createDirectory(
      atPath: folder.path("ben"), withIntermediateDirectories: false)
    try folder.write("b", to: "ben/a.store")
    let path = folder.path("ben/a.store")
    let own = try FileOrigin(of: path)
    let annas = try state.hold(store, by: "anna", why: "auditing")
    let hold = try state.hold(path, by: "ben", why: "testing") { _, file throws(InstarError) in
      #expect(file == own)
      #expect(rename(folder.path("ben"), folder.path("gone")) == 0)
      #expect(symlink(folder.path("."), folder.path("ben")) == 0)
    }
    #expect(hold.store == path && hold.inode == own.inode)
    #expect(try state.hold(on: store) == annas)
  }

  @Test("a hold is not on a store to which a link leads that took the place of a folder later")
  func laterLink() throws {
    for name in ["anna", "ben"] {
      try FileManager.default.createDirectory(
        atPath: folder.path(name), withIntermediateDirectories: false)
      try folder.write(name, to: "\(name)/a.store")
    }
    let path = folder.path("ben/a.store")
    let hold = try state.hold(path, by: "ben", why: "testing")
    try #require(rename(folder.path("ben"), folder.path("moved")) == 0)
    try #require(symlink(folder.path("anna"), folder.path("ben")) == 0)
    #expect(try state.hold(on: folder.path("anna/a.store")) == nil)
    #expect(try state.hold(on: path) == nil)
    #expect(try state.hold(on: folder.path("moved/a.store")) == hold)
    // A new file at the same path is held, though the held one still exists.
    try #require(unlink(folder.path("ben")) == 0)
    try FileManager.default.createDirectory(
      atPath: folder.path("ben"), withIntermediateDirectories: false)
    try folder.write("new", to: "ben/a.store")
    #expect(try state.hold(on: path) == hold)
  }

  @Test("a hold follows a store that is moved, and stays on the path for what takes its place")
  func moved() throws {
    let hold = try state.hold(store, by: "anna", why: "auditing")
    #expect(!hold.isReplaced)
    let moved = folder.path("b.store")
    try FileManager.default.moveItem(atPath: store, toPath: moved)
    #expect(try state.hold(on: moved) == hold)
    try folder.write("new", to: "a.store")
    #expect(try state.hold(on: store) == hold)
    #expect(hold.isReplaced)
    #expect(try state.release(moved) == hold)
    #expect(try state.hold(on: store) == nil)
  }

  @Test("a missing store is held while its file is written, and then the file; a failure ends that")
  func whileWriting() async throws {
    let path = folder.path("b.store")
    let failure = await #expect(throws: InstarError.self) {
      try await state.hold(missing: path, by: "anna", why: "restored") { () throws(InstarError) in
        throw InstarError(.noSpace, "cannot write", cause: "the disk is full")
      }
    }
    #expect(failure?.code == .noSpace && folder.names("state/holds") == [])
    let other = StateFolder(reading: state.path)
    let write = { () throws(InstarError) in
      #expect((try? other.hold(on: path))?.why == "restored")
      #expect(FileManager.default.createFile(atPath: path, contents: nil))
    }
    let hold = try await state.hold(missing: path, by: "anna", why: "restored", whileWriting: write)
    #expect(!hold.isReplaced && folder.names("state/holds").count == 1)
    try FileManager.default.removeItem(atPath: path)
    let again = try await state.hold(missing: path, by: "ben", why: "again", whileWriting: {})
    #expect(again == hold)
  }

  @Test("a hold outlives the recovery of an interrupted restore that held the path before")
  func replacesHoldOfRestore() async throws {
    try state.hold(store, by: "anna", why: "restored", run: "interrupted")
    try FileManager.default.removeItem(atPath: store)
    let write = { () throws(InstarError) in
      #expect(FileManager.default.createFile(atPath: store, contents: nil))
    }
    let hold = try await state.hold(missing: store, by: "ben", why: "again", whileWriting: write)
    try state.releaseHold(ofRun: "interrupted")
    #expect(try state.holds().holds == [hold])
    #expect(!hold.isReplaced)
  }

  @Test("a hold that a killed command left on a missing store is replaced by one on its new file")
  func replacesHoldWithoutFile() async throws {
    let path = folder.path("b.store")
    let hold = try await state.hold(missing: path, by: "anna", why: "killed") {
      () throws(InstarError) in
      // A copy of the folder is what a kill would leave.
      #expect(
        (try? FileManager.default.copyItem(atPath: state.path, toPath: folder.path("killed")))
          != nil)
      #expect(FileManager.default.createFile(atPath: path, contents: nil))
    }
    try state.release(hold)
    try FileManager.default.removeItem(atPath: path)
    let killed = try StateFolder(path: folder.path("killed"))
    #expect(try killed.hold(on: path)?.isReplaced == true)
    let again = try await killed.hold(missing: path, by: "ben", why: "again") {
      () throws(InstarError) in
      #expect(FileManager.default.createFile(atPath: path, contents: nil))
    }
    #expect(try killed.holds().holds == [again])
    #expect(!again.isReplaced && again.why == "again")
  }

  @Test("the hold of an interrupted copy stays where its file is in place")
  func interruptedAfterCopy() async throws {
    let path = folder.path("b.store")
    await #expect(throws: InstarError.self) {
      try await state.hold(missing: path, by: "anna", why: "restored") { () throws(InstarError) in
        #expect(FileManager.default.createFile(atPath: path, contents: nil))
        throw InstarError(.interrupted, "cannot copy", cause: "interrupted")
      }
    }
    #expect(try state.hold(on: path)?.why == "restored")
  }

  @Test("a new file with the inode of a deleted store is not held")
  func reusedInode() throws {
    try state.hold(store, by: "anna", why: "auditing")
    for number in 0..<20 {
      try FileManager.default.removeItem(atPath: store)
      let path = try folder.write("\(number)", to: "\(number).store")
      #expect(try state.hold(on: path) == nil)
      try FileManager.default.moveItem(atPath: path, toPath: store)
    }
  }

  @Test("a hold that cannot be read refuses its own store, also after a move, and no other")
  func unreadable() throws {
    try state.hold(store, by: "anna", why: "auditing")
    let name = try #require(folder.names("state/holds").first)
    try folder.write("{", to: "state/holds/\(name)")
    try folder.write("b", to: "b.store")
    let reader = StateFolder(reading: state.path)
    #expect(try reader.hold(on: folder.path("b.store")) == nil)
    let error = try instarError { _ = try reader.hold(on: store) }
    #expect(error.code == .stateFolderFailed && error.what.contains("holds/\(name)"))
    #expect(error.cause == "the file is not a hold")
    #expect(error.next?.hasSuffix("to end the hold, run: rm '\(state.path)/holds/\(name)'") == true)
    let moved = folder.path("c.store")
    try FileManager.default.moveItem(atPath: store, toPath: moved)
    #expect(throws: InstarError.self) { try reader.hold(on: moved) }
    #expect(try reader.holds().unreadable.count == 1)
  }

  @Test("a hold that cannot be read, under a name that says nothing, refuses every store")
  func unreadableUnderAnotherName() throws {
    try folder.write("{", to: "state/holds/H1.json")
    #expect(throws: InstarError.self) { try state.hold(on: store) }
  }
}
