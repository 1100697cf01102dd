import Foundation
import Glibc
import InstarLinux
import InstarSchema
import InstarTestSupport
import InstarWire
import Testing

@Suite("A run that is cut off by kill -9")
struct InterruptedRunTests {
  let folder: TemporaryFolder
  private let fixture: DaemonFixture

  init() throws {
    folder = try TemporaryFolder()
    fixture = try DaemonFixture(in: folder, plugins: [])
  }

  private func pids(of program: String, below ancestor: Int32) -> [Int32] {
    var children: [Int32: [Int32]] = [:]
    var names: [Int32: String] = [:]
    for entry in (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? [] {
      guard let pid = Int32(entry),
        let status = try? String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)
      else { continue }
      for line in status.split(separator: "\n") {
        let words = line.split(separator: "\t")
        guard words.count == 2 else { continue }
        if words[0] == "Name:" { names[pid] = String(words[1]) }
        if words[0] == "PPid:", let parent = Int32(words[1]) {
          children[parent, default: []].append(pid)
        }
      }
    }
    var found: [Int32] = []
    var waiting = [ancestor]
    while let pid = waiting.popLast() {
      if names[pid] == program { found.append(pid) }
      waiting += children[pid] ?? []
    }
    return found
  }

  /// The files by which the plan says that it is at work; it goes on when its file is gone.
  private func markers() -> [String] {
    folder.names("srv/.instar").map { folder.path("srv/.instar/\($0)/clone/at-work") }
      .filter { FileManager.default.fileExists(atPath: $0) }
  }

  /// `.instar/` holds the backup of one run with its manifest, and nothing else.
  private func expectOneBackup() throws {
    let names = folder.names("srv/.instar")
    #expect(names.map { ($0 as NSString).pathExtension } == ["backup", "json"], "\(names)")
  }

  @Test(
    "a run that is cut off by kill -9 leaves the store whole, is discarded and tried again",
    arguments: ["instar-worker", "instar-keeper", "instard"])
  func killed(program: String) async throws {
    let store = try fixture.add("waiting", boxes: 50)
    var daemon = try fixture.start()
    try FileManager.default.copyItem(
      atPath: try await FixturePlugins.boxes.value, toPath: folder.path("plugins/Boxes.so"))
    try await wait("the plan's code at work on the clone") { !markers().isEmpty }
    let victims = pids(of: program, below: daemon.pid)
    #expect(!victims.isEmpty)
    for victim in victims { Glibc.kill(victim, SIGKILL) }
    if program == "instard" {
      _ = try daemon.wait(deadline: soon())
      #expect(try store.version() == Schema.Version(1, 0, 0))
      daemon = try fixture.start()
    }
    try await wait("the second attempt") {
      for marker in markers() { unlink(marker) }
      return folder.names("srv/.instar").allSatisfy { !$0.hasPrefix("run-") }
        && FileManager.default.fileExists(atPath: folder.path("srv/.instar"))
        && (try? store.version()) == Schema.Version(2, 0, 0)
    }
    #expect(try store.version() == Schema.Version(2, 0, 0))
    #expect(try store.labels() == 50)
    #expect(try store.sizes() == Array(1000..<1050))
    try expectOneBackup()
    #expect(daemon.terminate(grace: .seconds(120)) == .exited(0))
    #expect(folder.names("state/phases").filter { $0.hasSuffix(".json") }.isEmpty)
  }
}
