internal import Foundation
internal import InstarSchema

/// Keeps the inodes of removed rollback journals while a keeper serves one store after the other.
///
/// On ext4 without a journal, whoever creates a file waits until the kernel has checked the inode of each file that
/// was removed in the last minutes (`recently_deleted` in fs/ext4/ialloc.c). SQLite removes a journal for each store,
/// so each run of a fleet took longer than the one before. An inode that is in use is not among those.
///
/// Invariants:
/// - Only a file without any name is kept, and it is empty. No other process can use it, and it takes one inode.
/// - It is kept by a mapping that nobody reads, and no child process inherits: the kernel removes it however the keeper
///   ends, and the descriptors that a keeper searches for that of a store do not become more.
/// - A file system is busy while it has such an inode. So the keeper forgets them when it has no request for a moment.
package final class RemovedJournals {
  private var mappings: [UnsafeMutableRawPointer] = []
  /// A process has at most 65,530 mappings (`vm.max_map_count`).
  private static let limit = 16_384
  private static let bytes = 1

  package init() {}

  deinit { forget() }

  /// Calls `body`, which may remove a store's journal, and keeps its inode then.
  func keepingJournal(ofStore store: String, _ body: () -> Void) {
    let path = SideFile.journal.path(of: store)
    let journal = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    body()
    guard journal >= 0 else { return }
    defer { close(journal) }
    var status = stat()
    guard fstat(journal, &status) == 0, status.st_nlink == 0, ftruncate(journal, 0) == 0 else {
      return
    }
    if mappings.count == Self.limit { forget() }
    let mapping = mmap(nil, Self.bytes, PROT_NONE, MAP_SHARED, journal, 0)
    guard let mapping, mapping != MAP_FAILED else { return }
    // The process `instar-lock` would keep it for as long as an app has a file open.
    guard madvise(mapping, Self.bytes, MADV_DONTFORK) == 0 else {
      munmap(mapping, Self.bytes)
      return
    }
    mappings.append(mapping)
  }

  /// Lets the kernel remove the files.
  func forget() {
    for mapping in mappings { munmap(mapping, Self.bytes) }
    mappings = []
  }
}
