import Foundation
import InstarSchema
import InstarStore
import InstarTestSupport
import Testing

/// What a probe makes of hostile files, in this process. `EndToEndTests` has the same files probed by
/// a keeper.
@Suite("Hostile stores")
struct HostileStoreTests {
  @Test(
    "each hostile file has an answer, and is left as it was", .timeLimit(.minutes(2)))
  func everyFile() throws {
    let folder = try TemporaryFolder()
    let seed = UInt64.random(in: 0...UInt64.max)
    let hostile = try HostileStores(in: folder, flips: 500, seed: seed)
    let before = try folder.contents()
    for file in hostile.files {
      let result = Result { () throws(InstarError) in try StoreProbe.read(file.path, rows: .quick) }
      let name = "\(file.path), seed \(seed)"
      switch (file.expected, result) {
      case (.understood(let entity), .success(let probe)):
        #expect(entity == nil || probe.entities.first?.name == entity, "\(name)")
      case (.state(let state), .failure(let error)):
        let codes: [InstarError.Code: String] = [
          .notAStore: "notAStore", .corruptStore: "corrupt", .encryptedStore: "encrypted",
          .busyStore: "busy", .unsafePath: "unknown", .unsupported: "unknown",
        ]
        #expect(codes[error.code] == state, "\(name): \(error)")
        #expect(!error.cause.isEmpty)
      case (.anything, .failure(let error)):
        let known: [InstarError.Code] = [
          .notAStore, .corruptStore, .encryptedStore, .busyStore, .unsupported, .unreadableStore,
        ]
        #expect(known.contains(error.code), "\(name): \(error)")
      case (.anything, .success): break
      default: Issue.record("\(name): \(file.expected), but \(result)")
      }
    }
    #expect(try folder.contents() == before)
  }

  @Test("a store that is exchanged for something else while it is opened is never mixed up with it")
  func exchange() async throws {
    let folder = try TemporaryFolder()
    try HostileStores.makeStore(folder.path("own"))
    try HostileStores.makeStore(
      folder.path("foreign"), sql: "UPDATE Z_PRIMARYKEY SET Z_NAME = 'Secret' WHERE Z_ENT = 1")
    let path = folder.path("store")
    try FileManager.default.copyItem(atPath: folder.path("own"), toPath: path)
    let next = folder.path("next")

    let isOver = Flag()
    let exchanger = Thread {
      while !isOver.isSet {
        for step in 0..<4 {
          switch step {
          case 0: symlink(folder.path("foreign"), next)
          case 1: mkfifo(next, 0o600)
          case 2: symlink("/dev/zero", next)
          default: link(folder.path("own"), next)
          }
          rename(next, path)
          // Of two names of one file, rename(2) leaves both.
          unlink(next)
        }
      }
    }
    exchanger.start()
    var answers: [String: Int] = [:]
    var probes = 0
    // On a busy machine the other thread may get its turn late.
    while probes < 2000 || (answers.count == 1 && probes < 1_000_000) {
      probes += 1
      do {
        let probe = try StoreProbe.read(path, busyTimeout: 0)
        #expect(probe.entities.map(\.name) == ["Note", "Tag"])
        answers["read", default: 0] += 1
      } catch {
        let known: [InstarError.Code] = [
          .unsafePath, .notAStore, .busyStore, .missingStore, .unreadableStore,
        ]
        #expect(known.contains(error.code), "\(error)")
        answers[error.code.rawValue, default: 0] += 1
      }
    }
    isOver.set()
    #expect(answers.count > 1, "\(answers)")
  }
}

/// Set once, by one thread for another.
private final class Flag: @unchecked Sendable {
  private let lock = NSLock()
  private var value = false
  var isSet: Bool { lock.withLock { value } }
  func set() { lock.withLock { value = true } }
}
