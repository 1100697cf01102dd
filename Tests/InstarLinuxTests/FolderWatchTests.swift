import Foundation
import Glibc
import InstarLinux
import InstarSchema
import InstarTestSupport
import Testing

@Suite("FolderWatch")
struct FolderWatchTests {
  /// The events up to the first one that `isLast` says yes to.
  func events(
    of watch: FolderWatch, until isLast: @escaping @Sendable (FolderWatch.Event) -> Bool
  ) async -> [FolderWatch.Event] {
    var seen: [FolderWatch.Event] = []
    for await event in watch.events {
      watch.taken(event)
      seen.append(event)
      if isLast(event) { break }
    }
    return seen
  }

  @Test("a file that is written and one that is moved in are told, with their folder")
  func changes() async throws {
    let folder = try TemporaryFolder(mode: 0o700)
    let elsewhere = try TemporaryFolder(mode: 0o700)
    let watch = try FolderWatch()
    defer { watch.close() }
    try watch.add(folder.path)
    try watch.add(folder.path)
    try folder.write("x", to: "made")
    let other = try elsewhere.write("x", to: "other")
    #expect(rename(other, folder.path("moved")) == 0)
    #expect(unlink(folder.path("moved")) == 0)
    try folder.write("x", to: "last")
    let path = folder.path
    let seen = await events(of: watch) { $0 == .changed(folder: path, name: "last") }
    #expect(seen.contains(.changed(folder: path, name: "made")))
    #expect(seen.contains(.changed(folder: path, name: "moved")))
  }

  @Test("what is made, changed or moved in is told as a folder if it is one, what is deleted not")
  func folders() async throws {
    let folder = try TemporaryFolder(mode: 0o700)
    let elsewhere = try TemporaryFolder(mode: 0o700)
    let path = folder.path
    let watch = try FolderWatch()
    defer { watch.close() }
    #expect(mkdir(folder.path("d"), 0o700) == 0)
    try watch.add(path)
    #expect(mkdir(folder.path("a"), 0o700) == 0)
    #expect(rmdir(folder.path("a")) == 0)
    #expect(mkdir(elsewhere.path("b"), 0o700) == 0)
    #expect(rename(elsewhere.path("b"), folder.path("b")) == 0)
    #expect(chmod(folder.path("d"), 0o755) == 0)
    #expect(symlink("b", folder.path("c")) == 0)
    let link = FolderWatch.Event.changed(folder: path, name: "c")
    let seen = await events(of: watch) { $0 == link }
    #expect(
      seen == [
        .changed(folder: path, name: "a", isFolder: true), .changed(folder: path, name: "a"),
        .changed(folder: path, name: "b", isFolder: true),
        .changed(folder: path, name: "d", isFolder: true), link,
      ])
  }

  @Test("a burst of changes is told in full, in order")
  func burst() async throws {
    let folder = try TemporaryFolder(mode: 0o700)
    let watch = try FolderWatch()
    defer { watch.close() }
    try watch.add(folder.path)
    for index in 0..<2000 { close(open(folder.path("\(index)"), O_CREAT | O_RDONLY, 0o600)) }
    let path = folder.path
    let seen = await events(of: watch) { $0 == .changed(folder: path, name: "1999") }
    #expect(!seen.contains(.overflow))
    #expect(seen == (0..<2000).map { .changed(folder: path, name: "\($0)") })
  }

  @Test("a change is told once until it is taken, and again after that")
  func repeated() async throws {
    let folder = try TemporaryFolder(mode: 0o700)
    let watch = try FolderWatch()
    defer { watch.close() }
    try watch.add(folder.path)
    func change(_ name: String) { close(open(folder.path(name), O_CREAT | O_WRONLY, 0o600)) }
    for _ in 0..<1000 {
      change("a")
      change("b")
    }
    change("last")
    let path = folder.path
    func changed(_ name: String) -> FolderWatch.Event { .changed(folder: path, name: name) }
    var iterator = watch.events.makeAsyncIterator()
    var untaken: [FolderWatch.Event] = []
    while untaken.last != changed("last") { untaken.append(try #require(await iterator.next())) }
    #expect(untaken == ["a", "b", "last"].map(changed))
    change("b")
    watch.taken(changed("a"))
    change("a")
    #expect(await iterator.next() == changed("a"))
  }

  @Test("a reader that falls behind gets a bounded number of events, and then an overflow")
  func flood() async throws {
    let folder = try TemporaryFolder(mode: 0o700)
    let watch = try FolderWatch()
    defer { watch.close() }
    try watch.add(folder.path)
    let kernelLimit = try #require(
      Int(
        String(contentsOfFile: "/proc/sys/fs/inotify/max_queued_events", encoding: .utf8)
          .trimmingCharacters(in: .whitespacesAndNewlines)))
    var made = 0
    for index in 0..<kernelLimit + 20_000 {
      if symlink("/", folder.path("\(index)")) == 0 { made += 1 }
      // The watch would have the time to read all.
      if index.isMultiple(of: 1000) { try await Task.sleep(for: .milliseconds(5)) }
    }
    #expect(made == kernelLimit + 20_000)
    try folder.write("x", to: "last")
    let last = FolderWatch.Event.changed(folder: folder.path, name: "last")
    let seen = await events(of: watch) { $0 == .overflow || $0 == last }
    #expect(seen.last == .overflow)
    #expect(seen.count < kernelLimit + 10_000)
    try folder.write("x", to: "last")
    #expect(await events(of: watch) { $0 == last }.count <= 2)
  }

  @Test("a watch that waits for its reader can be closed")
  func closingWhileReaderIsBehind() async throws {
    let folder = try TemporaryFolder(mode: 0o700)
    let watch = try FolderWatch()
    try watch.add(folder.path)
    let made = (0..<12_000).count { symlink("/", folder.path("\($0)")) == 0 }
    #expect(made == 12_000)
    try await Task.sleep(for: .milliseconds(200))
    watch.close()
    var told = 0
    for await _ in watch.events { told += 1 }
    #expect(told < made)
  }

  @Test("a folder that is deleted or moved away is told, and its new name is not watched")
  func removed() async throws {
    let folder = try TemporaryFolder(mode: 0o700)
    let watch = try FolderWatch()
    defer { watch.close() }
    for name in ["deleted", "moved"] {
      try FileManager.default.createDirectory(
        atPath: folder.path(name), withIntermediateDirectories: false)
      try watch.add(folder.path(name))
    }
    #expect(rmdir(folder.path("deleted")) == 0)
    #expect(rename(folder.path("moved"), folder.path("new")) == 0)
    let moved = folder.path("moved")
    let seen = await events(of: watch) { $0 == .removed(folder: moved) }
    #expect(seen == [.removed(folder: folder.path("deleted")), .removed(folder: moved)])
    try watch.add(folder.path)
    try folder.write("x", to: "new/unseen")
    try folder.write("x", to: "last")
    let path = folder.path
    let later = await events(of: watch) { $0 == .changed(folder: path, name: "last") }
    #expect(!later.contains(.changed(folder: moved, name: "unseen")))
  }

  @Test("a renamed folder is told with both paths; of one that is moved away nothing more is told")
  func renamed() async throws {
    let folder = try TemporaryFolder(mode: 0o700)
    let elsewhere = try TemporaryFolder(mode: 0o700)
    let watch = try FolderWatch()
    defer { watch.close() }
    try watch.add(folder.path)
    for name in ["old", "old/below", "away", "away/below"] {
      try FileManager.default.createDirectory(
        atPath: folder.path(name), withIntermediateDirectories: false)
      try watch.add(folder.path(name))
    }
    #expect(rename(folder.path("old"), folder.path("new")) == 0)
    let (old, new, away) = (folder.path("old"), folder.path("new"), folder.path("away"))
    let seen = await events(of: watch) { $0 == .removed(folder: old) }
    #expect(seen.contains(.moved(from: old, to: new)))
    #expect(rename(away, elsewhere.path("away")) == 0)
    let left = await events(of: watch) { $0 == .removed(folder: away) }
    let path = folder.path
    #expect(left == [.changed(folder: path, name: "away"), .removed(folder: away)])
    try elsewhere.write("x", to: "away/below/unseen")
    try folder.write("x", to: "new/below/unseen")
    try folder.write("x", to: "last")
    let later = await events(of: watch) { $0 == .changed(folder: path, name: "last") }
    #expect(later.allSatisfy { $0 == .changed(folder: path, name: "last") })
  }

  @Test("closing a watch ends its stream, and a closed watch takes no folder")
  func closing() async throws {
    let folder = try TemporaryFolder(mode: 0o700)
    let watch = try FolderWatch()
    watch.close()
    for await _ in watch.events { Issue.record("nothing happened") }
    #expect(try instarError { try watch.add(folder.path) }.code == .watchFailed)
  }

  @Test("a path that is not a folder is refused with its name")
  func missing() throws {
    let folder = try TemporaryFolder(mode: 0o700)
    let watch = try FolderWatch()
    defer { watch.close() }
    let error = try instarError { try watch.add(folder.path("none")) }
    #expect(error.code == .watchFailed)
    #expect(error.what.contains(folder.path("none")))
    #expect(
      try instarError { try watch.add(try folder.write("x", to: "file")) }.code == .watchFailed)
  }
}
