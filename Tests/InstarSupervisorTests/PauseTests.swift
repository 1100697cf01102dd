import Foundation
import Glibc
import InstarSchema
import InstarSupervisor
import InstarTestSupport
import InstarWire
import Testing

@Suite("The pause on disk")
struct PauseTests {
  private let folder: TemporaryFolder
  private let state: StateFolder
  private var file: String { state.path + "/pause.json" }

  init() throws {
    folder = try TemporaryFolder()
    state = try StateFolder(path: folder.path("state"))
  }

  private func refusal() -> InstarError? {
    #expect(throws: InstarError.self) { _ = try state.pause() }
  }

  @Test("a pause outlasts whoever ordered it, until it is ended")
  func order() throws {
    #expect(try state.pause() == nil)
    let pause = Manager.Pause(by: "anna (1000)", since: 1000, why: "a test")
    try state.setPause(pause)
    #expect(try StateFolder(path: state.path).pause() == pause)
    try state.endPause()
    #expect(try state.pause() == nil)
  }

  @Test("a pause is refused where the file is damaged, and can be ended")
  func damaged() throws {
    try Data("{\"by\":".utf8).write(to: URL(fileURLWithPath: file))
    let error = try #require(refusal())
    #expect(error.cause == "the file is not what 'instarctl pause' writes")
    #expect(error.next == "to end the pause, run: instarctl resume")
    try state.endPause()
    #expect(try state.pause() == nil)
  }

  @Test("a pause is refused where a symbolic link is in its place, also one to nothing")
  func link() throws {
    #expect(symlink("/nonexistent", file) == 0)
    #expect(refusal()?.cause == "not a regular file")
    try state.endPause()
    #expect(try state.pause() == nil)
  }

  @Test("a pause is refused where a folder is in its place, and the error says how to remove it")
  func folderInPlace() throws {
    try FileManager.default.createDirectory(atPath: file, withIntermediateDirectories: false)
    #expect(refusal()?.cause == "not a regular file")
    let error = #expect(throws: InstarError.self) { try state.endPause() }
    #expect(error?.next == "run: rm -r '\(file)'")
  }
}
