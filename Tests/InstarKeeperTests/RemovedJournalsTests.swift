import Foundation
import InstarTestSupport
import Testing

@testable import InstarKeeper

@Suite("Inodes of removed journals")
struct RemovedJournalsTests {
  private let folder: TemporaryFolder
  private var store: String { folder.path("a.store") }
  private var journal: String { store + "-journal" }

  init() throws {
    folder = try TemporaryFolder()
    try Data("pages".utf8).write(to: URL(filePath: folder.path("a.store-journal")))
  }

  /// Whether this process has a mapping of the journal that was removed.
  private func isKept() throws -> Bool {
    // Foundation reads only the start of a file that says it has no bytes, unless it reads by a handle.
    let handle = try FileHandle(forReadingFrom: URL(filePath: "/proc/self/maps"))
    let maps = try handle.readToEnd().map { String(decoding: $0, as: UTF8.self) }
    return maps?.contains("\(journal) (deleted)") == true
  }

  @Test("a journal that is removed keeps its inode until the keeper ends, without its content")
  func removed() throws {
    var journals: RemovedJournals? = RemovedJournals()
    let other = open(journal, O_RDONLY | O_CLOEXEC)
    defer { close(other) }
    journals?.keepingJournal(ofStore: store) { unlink(journal) }
    #expect(try isKept())
    var status = stat()
    #expect(fstat(other, &status) == 0 && status.st_size == 0)
    journals = nil
    #expect(try !isKept())
  }

  @Test("a journal that stays is neither kept nor changed")
  func staying() throws {
    let journals = RemovedJournals()
    journals.keepingJournal(ofStore: store) {}
    #expect(try !isKept())
    #expect(try String(contentsOfFile: journal, encoding: .utf8) == "pages")
  }

  @Test("a store without a journal is released all the same")
  func missing() throws {
    unlink(journal)
    var isReleased = false
    RemovedJournals().keepingJournal(ofStore: store) { isReleased = true }
    #expect(isReleased)
  }
}
