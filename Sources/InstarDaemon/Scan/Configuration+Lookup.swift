import Foundation
import InstarConfiguration
import InstarSupervisor
import InstarWire

extension Configuration {
  /// The watch that a folder belongs to.
  func watch(of folder: String) -> Watch? {
    watches.first { $0.folder == folder }
      ?? watches
      .filter { $0.isRecursive && folder.hasPrefix($0.folder == "/" ? "/" : $0.folder + "/") }
      .max { $0.folder.utf8.count < $1.folder.utf8.count }
  }

  /// The configuration with its watched folders as in a `StorePath`, for the stores that the ledger names.
  ///
  /// The scans use the folders as they are written: whether a link may be followed depends on its owner, and a link may
  /// get another target.
  var withResolvedFolders: Configuration {
    var copy = self
    for index in copy.watches.indices {
      copy.watches[index].folder = StorePath.folder(copy.watches[index].folder)
    }
    return copy
  }

  /// Returns the paths that the scans find for stores, which the state folder has without links.
  func watchedPaths(of stores: [String]) -> [String] {
    let moved = zip(watches, withResolvedFolders.watches).filter { $0.folder != $1.folder }
    guard !moved.isEmpty else { return stores }
    return stores.map { store in
      for (watch, resolved) in moved where store.hasPrefix(resolved.folder + "/") {
        return watch.folder + store.dropFirst(resolved.folder.count)
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

  /// The watch that a store of that path belongs to.
  func watch(ofStore store: String) -> Watch? {
    let path = store as NSString
    guard let watch = watch(of: path.deletingLastPathComponent),
      StoreName.matches(path.lastPathComponent, patterns: watch.patterns)
    else { return nil }
    return watch
  }
}

extension Configuration.Watch {
  /// Whether a scan that begins at `folder` would list a store of that path.
  func covers(_ store: String, in folder: String) -> Bool {
    let prefix = folder == "/" ? "/" : folder + "/"
    guard store.hasPrefix(prefix) else { return false }
    return isRecursive || !store.utf8.dropFirst(prefix.utf8.count).contains(UInt8(ascii: "/"))
  }
}
