import InstarLinux
import InstarSchema
import Synchronization

/// How many backups stores have in `.instar/`.
///
/// A folder has two files for each store beside it, and each run of these stores asks once. So a folder is listed once
/// in ten seconds, and what runs add meanwhile is counted. Backups that others make or remove in that time are missed:
/// the next run or the daily check removes what is too much.
final class CountedBackups: Sendable {
  private struct Folder {
    var counts: [String: Int]
    var readAt: ContinuousClock.Instant
  }

  private let folders = Mutex<[String: Folder]>([:])
  private static let validity = Duration.seconds(10)
  private static let folderLimit = 1_000

  /// Returns the number of backups of a store of which a run has just made one.
  func noteBackup(of store: String, at now: ContinuousClock.Instant = .now) -> Int {
    let (parent, name) = (store.parentFolder, store.lastName)
    let known: Int? = folders.withLock { folders in
      guard let readAt = folders[parent]?.readAt, now - readAt < Self.validity else { return nil }
      folders[parent]?.counts[name, default: 0] += 1
      return folders[parent]?.counts[name]
    }
    if let known { return known }
    // Without the lock: a disk may not answer.
    let counts = Self.counts(in: InstarFolder.path(besideStore: store))
    folders.withLock { folders in
      if folders.count >= Self.folderLimit { folders = [:] }
      folders[parent] = Folder(counts: counts, readAt: now)
    }
    return counts[name, default: 1]
  }

  /// By the name of the store. The name of a backup is that of the store and of the run, with a suffix.
  private static func counts(in folder: String) -> [String: Int] {
    // Where the folder cannot be listed, the daily check reports why.
    let names = (try? FolderNames.all(in: folder, suffix: ".backup")) ?? []
    return names.reduce(into: [:]) { counts, name in
      let store = name.dropLast(".backup".count)
      guard let dot = store.lastIndex(of: ".") else { return }
      counts[String(store[..<dot]), default: 0] += 1
    }
  }
}
