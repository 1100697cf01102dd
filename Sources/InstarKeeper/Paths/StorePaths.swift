internal import Foundation
internal import InstarLinux
internal import InstarSchema
internal import InstarStore
internal import Synchronization

/// The paths of a store and of the files of its runs.
///
/// ```text
/// FOLDER/NAME                          the store
/// FOLDER/.instar/run-RUN/              one run: locked by its keeper, removed at its end
/// FOLDER/.instar/run-RUN/clone/NAME    the only folder that a worker may write
/// FOLDER/.instar/run-RUN/backup
/// FOLDER/.instar/NAME.RUN.copy         the same as `backup`, of a run in a transaction: it has no folder
/// FOLDER/.instar/NAME.RUN.backup       the backup, from just before the store is written
/// FOLDER/.instar/NAME.RUN.files        the external values that the run adds or removes, until that is done
/// FOLDER/.BASE_SUPPORT/                external values of the store; clone and backup have such folders too
/// ```
struct StorePaths {
  let folder: String
  let name: String

  var store: String { folder + "/" + name }
  var instarFolder: String { InstarFolder.path(besideStore: store) }

  /// - Parameter store: An absolute path without symbolic links in its folders, as `StoreFile.path`
  ///   is.
  init(resolvedStore store: String) {
    let parent = store.parentFolder
    folder = parent == "/" || store.isEmpty ? "" : parent
    name = store.lastName
  }

  func runFolder(_ run: String) -> String { "\(instarFolder)/run-\(run)" }
  func clone(_ run: String) -> String { "\(runFolder(run))/clone/\(name)" }
  func copy(_ run: String) -> String { "\(instarFolder)/\(name).\(run)\(Self.copySuffix)" }
  static let copySuffix = ".copy"
  func backup(_ run: String) -> String { backup(run, in: instarFolder) }
  func backup(_ run: String, in folder: String) -> String { "\(folder)/\(name).\(run).backup" }
  /// The name of a backup that is being copied to another file system.
  static func partial(_ backup: String) -> String { backup + ".part" }
  /// The most bytes of a store's name that leave room for what the names of its runs' files add. Names have 255 bytes.
  static func longestName(hasExternalValues: Bool) -> Int {
    let run = ".20261231T235959Z-ffffff"
    let longest = hasExternalValues ? run + ".files.4194304.4294967295.tmp" : run + ".backup.part"
    return 255 - longest.utf8.count
  }
  /// What the name of a compacted clone adds to that of the clone.
  static let compactedSuffix = ".compacted"
  /// The most bytes of a store's path that leave room for the paths of its runs' files, as far as SQLite opens these.
  static let longestPath =
    StoreFile.longestPath
    - "/\(InstarFolder.name)/run-20261231T235959Z-ffffff/clone\(compactedSuffix)".utf8.count
  func fileList(_ run: String) -> String { "\(instarFolder)/\(name).\(run).files" }

  /// The lists of files that a keeper was writing when it died (`DurableFile.write`).
  func unfinishedFileLists(_ run: String) -> [String] {
    // No folder, no list.
    let names = try? FolderNames.all(
      in: instarFolder, prefix: "\(name).\(run).files.", suffix: ".tmp")
    return (names ?? []).map { "\(instarFolder)/\($0)" }
  }

  /// The files of an ended run that are still there: an unlink can fail.
  ///
  /// - Parameter backup: The run's backup; `nil` where it is kept.
  func leftovers(ofRun run: String, removedBackup backup: String?) -> [String] {
    var paths = [runFolder(run), copy(run), fileList(run)]
    // Only external values are listed. Looking for lists after each run would take a fleet the longer the more stores
    // are beside each other: `.instar/` has two files for each of them.
    if access(ExternalValues.supportFolder(ofStore: store), F_OK) == 0 {
      paths += unfinishedFileLists(run)
    }
    if let backup { paths += [backup, ExternalValues.supportFolder(ofStore: backup)] }
    return paths.filter { path in
      var status = stat()
      return lstat(path, &status) == 0
    }
  }

  /// Brings the entries of the store's folder to disk.
  func synchronizeFolder() throws(InstarError) {
    try DurableFile.synchronizeFolder(folder.isEmpty ? "/" : folder)
  }

  /// Brings the name of `.instar/` to disk: once for each such folder, which serves all stores beside it.
  func synchronizeInstarFolderName() throws(InstarError) {
    let instar = try FileOrigin(of: instarFolder)
    if Self.namedOnDisk.withLock({ $0.contains(instar) }) { return }
    try synchronizeFolder()
    // Without a time of creation it cannot be distinguished from a later one.
    guard instar.createdNanoseconds != 0 else { return }
    Self.namedOnDisk.withLock { known in
      if known.count >= Self.knownLimit { known.removeAll() }
      known.insert(instar)
    }
  }

  /// The folders `.instar/` whose names this process brought to disk. One that is removed and made again is another.
  private static let namedOnDisk = Mutex<Set<FileOrigin>>([])
  private static let knownLimit = 4096

  /// The folder in which Core Data keeps external values beside a store.
  var supportFolder: String { ExternalValues.supportFolder(ofStore: store) }
}
