import Foundation
import InstarConfiguration
import InstarSchema
import InstarTestSupport
import Synchronization
import Testing

@testable import InstarDaemon

/// A mounted file system that answers nothing, because no program reads its requests.
private final class SilentFileSystem: Sendable {
  private let place: String
  private let requests: Mutex<Int32?>

  static let canMount = geteuid() == 0 && access("/dev/fuse", R_OK | W_OK) == 0

  init(at place: String) throws {
    let requests = open("/dev/fuse", O_RDWR | O_CLOEXEC)
    try #require(requests >= 0)
    self.place = place
    self.requests = Mutex(requests)
    let options = "fd=\(requests),rootmode=40000,user_id=0,group_id=0"
    try #require(options.withCString { mount("silent", place, "fuse", 0, $0) } == 0)
  }

  /// Unmounts it. All its requests fail.
  func end() {
    guard let requests = requests.withLock({ $0.take() }) else { return }
    umount2(place, Int32(MNT_FORCE | MNT_DETACH))
    close(requests)
  }

  deinit { end() }
}

@Suite(
  "A watch whose file system does not answer",
  .enabled(if: SilentFileSystem.canMount, "mounting needs root and FUSE"))
struct SilentWatchTests {
  @Test(
    "keeps the start waiting for a minute, and is used as soon as it answers",
    .timeLimit(.minutes(1)), arguments: ["silent", "silent/stores"])
  func answersLate(watched: String) async throws {
    let folder = try TemporaryFolder()
    for name in ["good", "silent/stores"] {
      try FileManager.default.createDirectory(
        atPath: folder.path(name), withIntermediateDirectories: true)
    }
    try folder.write("x", to: "\(watched)/a.store")
    let fileSystem = try SilentFileSystem(at: folder.path("silent"))
    defer { fileSystem.end() }
    var configuration = Configuration()
    configuration.watches = ["good", watched].map {
      Configuration.Watch(folder: folder.path($0), patterns: ["*.store"])
    }
    let silent = configuration.watches[1].path
    let lines = LogRecorder.Lines()
    let (messages, mailbox) = AsyncStream.makeStream(of: DaemonMessage.self)
    var folders = try WatchedFolders(
      configuration, generation: 0, log: EventLog { LogRecorder(identifier: $0, lines: lines) },
      mailbox: mailbox)
    defer { folders.close() }
    var rest = messages.makeAsyncIterator()
    /// The stores of the next scan that ends.
    func finishScan() async throws -> [String] {
      while let message = await rest.next() {
        guard case .scanned(let scan) = message else { continue }
        return folders.finish(scan, stores: { _ in [] }).flatMap { event -> [String] in
          if case .found(let stores) = event { stores.map(\.path) } else { [] }
        }
      }
      return []
    }

    #expect(folders.silenceDue == nil, "no scan has begun")
    folders.scanAll()
    #expect(try await finishScan() == [])
    while folders.silenceDue == nil { try await Task.sleep(for: .milliseconds(5)) }
    let due = try #require(folders.silenceDue)
    #expect(folders.leaveSilentWatches(at: due - .milliseconds(1)) == [])
    #expect(!folders.areReadOrSilent)
    #expect(folders.unreadable.isEmpty)
    #expect(folders.leaveSilentWatches(at: due) == [silent])
    #expect(folders.areReadOrSilent && !folders.areRead)
    #expect(folders.silenceDue == nil)
    #expect(folders.unreadable[silent]?.cause == "its file system has not answered for 60 s")

    fileSystem.end()
    folders.followMounts()
    var found: [String] = []
    while folders.unreadable[silent] != nil { found += try await finishScan() }
    #expect(folders.areRead)
    #expect(found == [folder.path("\(watched)/a.store")])
  }
}
