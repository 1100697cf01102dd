import Foundation
import InstarLinux
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

@testable import InstarSupervisor

@Suite("Paths of stores in the state folder")
struct StorePathTests {
  let folder: TemporaryFolder
  let state: StateFolder

  init() throws {
    folder = try TemporaryFolder()
    state = try StateFolder(path: folder.path("state"))
    try FileManager.default.createDirectory(
      atPath: folder.path("real"), withIntermediateDirectories: false)
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("link"), withDestinationPath: "real")
    try folder.write("a", to: "real/a.store")
  }

  private var store: String { folder.path("real/a.store") }

  @Test("paths of stores lose links, '.' and '..' in the folder, and keep a link in the name")
  func spelling() throws {
    let paths = [
      "link/a.store", "real/./a.store", "link/../real//a.store", "state/../link/a.store",
    ].map { folder.path + "/" + $0 }
    for path in paths { #expect(StorePath(path).text == store) }
    let all = StorePath.all(paths + ["/a.store"], by: FileReader(patience: .seconds(30)))
    #expect(all.map(\.text) == paths.map { _ in store } + ["/a.store"])
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("real/b.store"), withDestinationPath: "a.store")
    #expect(StorePath(folder.path("link/b.store")).text == folder.path("real/b.store"))
    #expect(StorePath("/no-such-folder/x/../a.store").text == "/no-such-folder/a.store")
    #expect(StorePath("/a.store").text == "/a.store")
    #expect(StorePath("/tmp/..").text == "/")
  }

  @Test("a backup is found by any path")
  func ledger() throws {
    for (run, path) in [("R1", store), ("R2", folder.path("link/a.store"))] {
      try append(run, path)
    }
    for path in [store, folder.path("link/a.store"), folder.path("link/../real/a.store")] {
      #expect(try state.history(store: path).reports.map(\.run) == ["R1", "R2"])
      #expect(try state.backup(of: path, run: nil).run == "R2")
    }
    #expect(try state.backups().map(\.reference.store) == [store, store])
    #expect(try state.history(store: folder.path("state/a.store")).reports == [])
  }

  private func append(_ run: String, _ path: String) throws {
    var report = RunReport(run: run, store: path, result: .migrated, startedAt: 1)
    report.backup = folder.path("real/.instar/\(run).backup")
    try state.append(report)
  }

  @Test("a folder that became a link gives its runs and backups to no store behind the link")
  func laterLink() throws {
    try FileManager.default.createDirectory(
      atPath: folder.path("other"), withIntermediateDirectories: false)
    try folder.write("b", to: "other/a.store")
    let other = folder.path("other/a.store")
    try append("R1", store)
    try append("R2", other)
    try FileManager.default.removeItem(atPath: folder.path("other"))
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("other"), withDestinationPath: "real")
    #expect(try state.history(store: store).reports.map(\.run) == ["R1"])
    #expect(try state.backup(of: store, run: nil).run == "R1")
    #expect(try state.backups().map(\.reference.store) == [store, other])
  }

  @Test("a run is recorded without links, and a hold by one path is released by another")
  func written() throws {
    let linked = folder.path("link/a.store")
    try state.append(RunReport(run: "R1", store: linked, result: .migrated, startedAt: 1))
    #expect(try state.history().reports.map(\.store) == [store])
    let hold = try state.hold(linked, by: "anna", why: "auditing")
    #expect(hold.store == store)
    #expect(try state.release(folder.path("link/../link/a.store")) == hold)
  }
}
