import Instar
import InstarStore
import InstarTestSupport
import Testing

@testable import InstarModel

@Model private final class Stamp {
  var name: String
  init(name: String) { self.name = name }
}

/// A writer of a store with a rollback journal keeps readers out too.
@Suite("Contexts of stores that another process has locked")
struct LockedStoreTests {
  private let folder: TemporaryFolder
  private let container: ModelContainer
  private let context: ModelContext

  init() throws {
    folder = try TemporaryFolder()
    let library = Schema(versionedSchema: Library.self)
    let stamps = Schema([Stamp.self])
    container = try ModelContainer(
      for: Schema(Library.models + [Stamp.self]),
      configurations: ModelConfiguration(
        "library", schema: library, url: URL(filePath: folder.path("library.store"))),
      ModelConfiguration(
        "stamps", schema: stamps, url: URL(filePath: folder.path("stamps.store"))))
    for store in container.stores.all {
      try store.connection.perform { session in
        try session.run("PRAGMA journal_mode = DELETE")
        // Fail at once.
        try session.run("PRAGMA busy_timeout = 0")
      }
    }
    context = ModelContext(container)
  }

  /// Locks a store until the process is told to finish.
  private func locked(_ name: String) throws -> OtherProcess {
    try OtherProcess.holding(folder.path(name), "EXCLUSIVE")
  }

  @Test("a save does not need a store that it does not write")
  func otherStore() throws {
    let other = try locked("stamps.store")
    context.insert(Library.Tag(name: "a"))
    try context.save()
    other.finish()
    #expect(try ModelContext(container).all(Library.Tag.self).map(\.name) == ["a"])
    try container.close()
  }

  @Test("the error of a save names the locked store, its state and the next step")
  func lockedStore() throws {
    let other = try locked("library.store")
    context.insert(Library.Tag(name: "a"))
    context.insert(Stamp(name: "b"))
    let error = #expect(throws: InstarError.self) { try context.save() }
    #expect(error?.code == .busyStore)
    #expect(error?.what == "cannot save to '\(folder.path("library.store"))'")
    #expect(error?.state == "unchanged")
    #expect(
      error?.next
        == "wait until the other process has ended its transaction, then call save() again")
    other.finish()
    try context.save()
    #expect(try ModelContext(container).all(Library.Tag.self).count == 1)
    #expect(try ModelContext(container).all(Stamp.self).count == 1)
    try container.close()
  }

  @Test("a value that could not be read during the lock is read after it, and can be set to nil")
  func readDuringLock() throws {
    let note = Library.Note(uid: "1", title: "one")
    context.insert(note)
    try context.save()
    note.title = "mine"
    let others = ModelContext(container)
    let theirs = try #require(try others.all(Library.Note.self).first)
    theirs.score = 2
    theirs.count = 7
    try others.save()
    // Unloads the values that the other context may have changed.
    #expect(try context.all(Library.Folder.self).isEmpty)

    let other = try locked("library.store")
    #expect(note.score == nil && note.count == 0)
    let error = #expect(throws: InstarError.self) { try context.save() }
    #expect(error?.code == .busyStore)
    other.finish()
    #expect(note.score == 2 && note.count == 7 && note.title == "mine")
    note.score = nil
    try context.save()
    let stored = try #require(try ModelContext(container).all(Library.Note.self).first)
    #expect(stored.score == nil && stored.count == 7 && stored.title == "mine")
    try container.close()
  }
}
