import Foundation
import InstarConfiguration
import InstarSchema
import InstarTestSupport
import Testing

@testable import InstarDaemon

/// The watches of some folders, and the scans that end.
private struct WatchBench {
  var folders: WatchedFolders
  let watches: [Configuration.Watch]
  private var messages: AsyncStream<DaemonMessage>.Iterator

  init(_ watched: [String], in folder: TemporaryFolder) throws {
    var configuration = Configuration()
    configuration.watches = watched.map {
      Configuration.Watch(folder: folder.path($0), patterns: ["*.store"])
    }
    watches = configuration.watches
    let lines = LogRecorder.Lines()
    let (messages, mailbox) = AsyncStream.makeStream(of: DaemonMessage.self)
    folders = try WatchedFolders(
      configuration, generation: 0, log: EventLog { LogRecorder(identifier: $0, lines: lines) },
      mailbox: mailbox, reader: .ofDaemon)
    self.messages = messages.makeAsyncIterator()
  }

  /// The stores of the next scan that ends.
  ///
  /// - Parameter unwatched: The folders that the kernel cannot watch, as at the limit of inotify watches.
  mutating func finishScan(
    unwatched: Set<String> = []
  ) async throws -> [InstarDaemon.Scanner.Store] {
    while let message = await messages.next() {
      guard case .scanned(var scan) = message else { continue }
      scan.unwatched.formUnion(unwatched)
      for case .found(let stores) in folders.finish(scan, stores: { _ in [] }) { return stores }
      return []
    }
    return []
  }

  /// When the scan that is in progress, or about to begin, will be late.
  func silenceDue() async throws -> ContinuousClock.Instant {
    while true {
      if let due = folders.silenceDue { return due }
      try await Task.sleep(for: .milliseconds(5))
    }
  }
}

@Suite(
  "A watch whose file system does not answer", .serialized,
  .enabled(if: SilentFileSystem.canMount, "mounting needs root and FUSE"))
struct SilentWatchTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// Makes folders to watch, each with a store.
  private func makeFolders(_ names: String...) throws {
    for name in names {
      try FileManager.default.createDirectory(
        atPath: folder.path(name), withIntermediateDirectories: true)
      try folder.write("x", to: "\(name)/a.store")
    }
  }

  @Test(
    "a silent watch keeps the start waiting for a minute, and is used as soon as it answers",
    .timeLimit(.minutes(1)), arguments: ["silent", "silent/stores"])
  func answersLate(watched: String) async throws {
    try makeFolders("good", "silent/stores", watched)
    let fileSystem = try SilentFileSystem(at: folder.path("silent"))
    defer { fileSystem.end() }
    var bench = try WatchBench(["good", watched], in: folder)
    defer { bench.folders.close() }
    let silent = bench.watches[1].path

    #expect(bench.folders.silenceDue == nil, "no scan has begun")
    bench.folders.scanAll()
    #expect(try await bench.finishScan().map(\.path) == [folder.path("good/a.store")])
    let due = try await bench.silenceDue()
    #expect(bench.folders.leaveSilentWatches(at: due - .milliseconds(1)) == [])
    #expect(!bench.folders.areReadOrSilent)
    #expect(bench.folders.unreadable.isEmpty)
    #expect(bench.folders.leaveSilentWatches(at: due) == [silent])
    #expect(bench.folders.areReadOrSilent && !bench.folders.areRead)
    #expect(bench.folders.silenceDue == nil)
    #expect(bench.folders.unreadable[silent]?.cause == "its file system has not answered for 60 s")

    fileSystem.end()
    bench.folders.followMounts()
    var found: [InstarDaemon.Scanner.Store] = []
    while bench.folders.unreadable[silent] != nil { found += try await bench.finishScan() }
    #expect(bench.folders.areRead)
    #expect(found.map(\.path) == [folder.path("\(watched)/a.store")])
  }

  @Test(
    "a silent watch is known by the folder that its link names",
    arguments: ["linked", "linked/stores"])
  func link(watched: String) throws {
    try makeFolders("silent/stores")
    try FileManager.default.createSymbolicLink(
      atPath: folder.path("linked"),
      withDestinationPath: watched == "linked" ? folder.path("silent/stores") : "./silent")
    let fileSystem = try SilentFileSystem(at: folder.path("silent"))
    defer { fileSystem.end() }
    let bench = try WatchBench([watched], in: folder)
    defer { bench.folders.close() }
    #expect(bench.folders.realFolders[bench.watches[0].path] == folder.path("silent/stores"))
  }

  /// How many threads of a `FileReader` there are.
  private func readerCount() throws -> Int {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count { thread in
      // Other threads may end meanwhile.
      (try? String(contentsOfFile: "/proc/self/task/\(thread)/comm", encoding: .utf8))
        == "instar-reader\n"
    }
  }

  @Test(
    "a watch that is silent after its first scan is asked once, keeps no other waiting, and is scanned when it answers",
    .timeLimit(.minutes(1)))
  func dies() async throws {
    try makeFolders("good", "silent/stores", "silent/others")
    var bench = try WatchBench(["good", "silent/stores", "silent/others"], in: folder)
    defer { bench.folders.close() }
    bench.folders.scanAll()
    for _ in bench.watches { _ = try await bench.finishScan() }
    #expect(bench.folders.areRead)
    let (good, store, other) = (
      folder.path("good/a.store"), folder.path("silent/stores/a.store"),
      folder.path("silent/others/a.store")
    )
    let below = open(folder.path("silent/stores"), O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    try #require(below >= 0)
    defer { close(below) }
    let fileSystem = try SilentFileSystem(at: folder.path("silent"))
    defer { fileSystem.end() }

    #expect(bench.folders.versions(of: [store, good, other]) == [good: WatchedVersion(path: good)])
    let readers = try readerCount()
    #expect(bench.folders.versions(of: [other, store]).isEmpty)
    #expect(bench.folders.versions(of: [good]) == [good: WatchedVersion(path: good)])
    #expect(try readerCount() == readers)
    let silent = bench.folders.leaveSilentWatches(at: try await bench.silenceDue())
    #expect(silent == [bench.watches[1].path])
    #expect(bench.folders.unreadable.keys.sorted() == silent)

    try Data("changed".utf8).write(to: URL(filePath: "/proc/self/fd/\(below)/a.store"))
    fileSystem.end()
    var versions: [String: WatchedVersion] = [:]
    while versions[store]?.sizeBytes != 7 || versions[other] == nil {
      for found in try await bench.finishScan() { versions[found.path] = found.version }
    }
    while bench.folders.versions(of: [store, other]).count < 2 {
      _ = try await bench.finishScan()
    }
    #expect(bench.folders.unreadable.isEmpty)
  }
}

@Suite("A watch whose own folder the kernel cannot watch")
struct PolledWatchTests {
  @Test(
    "a watch whose own folder the kernel cannot watch is polled again and again",
    .timeLimit(.minutes(1)))
  func poll() async throws {
    let folder = try TemporaryFolder()
    try FileManager.default.createDirectory(
      atPath: folder.path("polled"), withIntermediateDirectories: false)
    try folder.write("x", to: "polled/a.store")
    var bench = try WatchBench(["polled"], in: folder)
    defer { bench.folders.close() }
    bench.folders.scanAll()
    for _ in 0..<3 {
      let stores = try await bench.finishScan(unwatched: [folder.path("polled")])
      #expect(stores.map(\.path) == [folder.path("polled/a.store")])
      #expect(bench.folders.pollDue != nil)
      bench.folders.poll()
    }
  }
}
