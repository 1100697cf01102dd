import Foundation
import InstarSchema
import InstarStore
import InstarTestSupport
import Testing

@Suite("The error of a full disk")
struct FullDiskTests {
  private let folder: TemporaryFolder
  /// So large that no other test of this process writes such a file. The file has holes, and needs no space.
  private let size: UInt64 = 16 << 30

  init() throws { folder = try TemporaryFolder() }

  /// Runs `body` while no file of this process may become larger than `size`. As in `instar-keeper`, a longer write
  /// fails, and does not end the process.
  private func withLimitOfFiles(_ body: () throws -> Void) throws {
    let resource = __rlimit_resource_t(RLIMIT_FSIZE.rawValue)
    var before = rlimit()
    try #require(getrlimit(resource, &before) == 0)
    let handler = signal(SIGXFSZ, SIG_IGN)
    var limit = before
    limit.rlim_cur = rlim_t(size)
    try #require(setrlimit(resource, &limit) == 0)
    defer {
      setrlimit(resource, &before)
      signal(SIGXFSZ, handler)
    }
    try body()
  }

  @Test("the error of a full disk names the limit of the size of files only where a write met it")
  func limit() throws {
    let path = folder.path("a.store")
    let made = try StoreConnection(path: path, durability: .clone)
    try made.perform { try $0.run("CREATE TABLE note (text)") }
    try made.close()
    // Without the number of pages in its header, the size of the file decides.
    let file = try FileHandle(forUpdating: URL(filePath: path))
    try file.seek(toOffset: 28)
    try file.write(contentsOf: Data(count: 4))
    try file.truncate(atOffset: size)
    try file.close()

    let connection = try StoreConnection(path: path, durability: .clone)
    try withLimitOfFiles {
      try connection.perform { session in
        func advice() throws -> String {
          let error = #expect(throws: InstarError.self) {
            try session.run("INSERT INTO note VALUES (zeroblob(100000))")
          }
          #expect(error?.code == .noSpace, "\(String(describing: error))")
          return try #require(error?.next)
        }
        let space = "free some space on the store's file system"
        let written = try advice()
        #expect(written.hasPrefix("raise the limit of the size of files, which is \(size) bytes"))
        #expect(written.contains("; or \(space)"))
        // SQLite refuses this one before any write. It makes the number as large as the file.
        try session.run("PRAGMA max_page_count = 1")
        #expect(try advice().hasPrefix(space))
      }
    }
    try connection.close()
  }
}
