import Foundation
import InstarConfiguration
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire

extension Configuration {
  /// The watch that a store belongs to. Of several whose folder and pattern match, the one that names most levels of
  /// the store's path, and of these the one with the fewest patterns of folders.
  func watch(ofStore store: String) -> Watch? {
    let folder = store.parentFolder
    // Most stores, and this is asked for each of them.
    return watches.first {
      $0.folder == folder && $0.subfolders.isEmpty && $0.hasName(ofStore: store)
    }
      ?? watches.filter { $0.holdsStores(in: folder) && $0.hasName(ofStore: store) }.max {
        $0.rank(for: folder) < $1.rank(for: folder)
      }
  }

  /// Returns the configuration with its watched folders as in a `StorePath`, for the stores that the ledger names.
  ///
  /// The scans use the folders as they are written: whether a symbolic link may be followed depends on its owner, and
  /// it may get another target.
  ///
  /// - Parameter realFolders: As of `watchedPaths`. Resolved here, a folder could keep the work on all watches waiting
  ///   for its file system.
  func with(realFolders: [String: String]) -> Configuration {
    var copy = self
    for (index, watch) in watches.enumerated() {
      copy.watches[index].folder = realFolders[watch.path] ?? watch.folder
    }
    return copy
  }

  /// Returns the paths that the scans find for stores, which the state folder has without symbolic links.
  ///
  /// - Parameter realFolders: The folders of the watches as in a `StorePath`, by the path of the watch. A folder that
  ///   is missing there is used as it is written.
  func watchedPaths(of stores: [String], realFolders: [String: String]) -> [String] {
    let moved = watches.compactMap { watch -> (written: String, real: String)? in
      guard let real = realFolders[watch.path], real != watch.folder else { return nil }
      return (watch.folder, real)
    }
    guard !moved.isEmpty else { return stores }
    return stores.map { store in
      for folder in moved where store.isBelow(folder.real) {
        let rest = folder.real == "/" ? store[...] : store.dropFirst(folder.real.count)
        return folder.written + rest
      }
      return store
    }
  }

  /// Which backups of a store are kept.
  func retention(ofStore store: String) -> BackupRetention {
    watch(ofStore: store)?.backups ?? backups
  }

  /// Where the copies of a store's backups go; `nil` for none.
  func copyFolder(ofStore store: String) -> BackupFolder? {
    let watch = watch(ofStore: store)
    return (watch?.backupFolder ?? backupFolder).map {
      BackupFolder(path: $0, compression: watch?.backupCompression ?? backupCompression)
    }
  }
}

extension Configuration.Watch {
  /// Whether the files of a folder are stores of this watch, if their names match.
  func holdsStores(in folder: String) -> Bool {
    guard let levels = matchedLevels(of: folder) else { return false }
    return levels == subfolders.count || levels > subfolders.count && isRecursive
  }

  /// Whether the name of a store matches, wherever it is.
  func hasName(ofStore store: String) -> Bool {
    StoreName.matches(store.lastName, patterns: patterns)
  }

  /// Whether a scan lists a folder: for its stores, or for folders in it.
  func enters(_ folder: String) -> Bool {
    guard let levels = matchedLevels(of: folder) else { return false }
    return levels <= subfolders.count || isRecursive
  }

  /// How many levels a folder is below that of the watch; `nil` where it is not, or a level does not match its pattern.
  private func matchedLevels(of folder: String) -> Int? {
    if folder == self.folder { return 0 }
    guard folder.isBelow(self.folder) else { return nil }
    // Most watches have no pattern, and this is asked for each store.
    if subfolders.isEmpty, !isRecursive { return 1 }
    let levels = folder.utf8.dropFirst(self.folder.utf8.count).split(separator: UInt8(ascii: "/"))
    for (level, pattern) in zip(levels, subfolders)
    where fnmatch(pattern, String(Substring(level)), FNM_PERIOD) != 0 {
      return nil
    }
    return levels.count
  }

  fileprivate func rank(for folder: String) -> (namedLevels: Int, namedWithoutPatterns: Int) {
    // All watches that are compared are above the same folder. So the one that leaves the fewest levels unnamed names
    // the most.
    let unnamed = (matchedLevels(of: folder) ?? .max) - subfolders.count
    let patternCount = subfolders.count { name in name.contains { "*?[".contains($0) } }
    return (-unnamed, -patternCount)
  }
}
