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
    #expect(seen.filter { $0 == .changed(folder: path, name: "moved") }.count == 2)
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

  @Test("closing ends the stream, and a closed watch takes no folder")
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
