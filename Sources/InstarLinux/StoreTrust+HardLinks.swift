import Glibc
package import InstarSchema

extension StoreTrust {
  /// Refuses a store whose file has several names, that is, hard links, or mounts of the file itself.
  ///
  /// SQLite's locks belong to the file, but it finds journal, log and shared memory by the file's name. An app that has
  /// the store open under another name writes another log, and neither side sees the writes of the other.
  ///
  /// - Throws: `unsafePath` with the other names that were found; nothing for a missing file.
  package static func requireSingleLink(_ store: String) throws(InstarError) {
    if FileFlag.of(store).contains(.mountPoint) {
      throw InstarError(
        .unsafePath, "cannot open '\(store)'", store: store,
        cause: "the file is a mount point, so apps may use it under another name too"
          + "; SQLite protects a store only if all apps use the same name",
        state: "unchanged",
        next:
          "mount the folder of the store instead, or pass the path of the mounted file; to find it, run: "
          + "findmnt \(CommandText.quoted(store))")
    }
    guard let status = stat(of: store), status.st_nlink > 1 else { return }
    let names = otherNames(of: store, status)
    let list = names.map(CommandText.quoted).joined(separator: ", ")
    throw InstarError(
      .unsafePath, "cannot open '\(store)'", store: store,
      cause: "the file has \(status.st_nlink) names (hard links)"
        + (list.isEmpty ? "; the others are not in folders near it" : ", also \(list)")
        + "; SQLite protects a store only if all apps use the same name",
      state: "unchanged",
      next:
        "close the store in all apps, then remove the names that no app uses; to list them, run: "
        + "find / -samefile \(CommandText.quoted(store))")
  }

  /// The most folder entries that are read to find other names.
  private static let entryLimit = 10_000
  /// The most other names that are listed.
  private static let nameLimit = 5

  /// Searches the folder of the store and the one above it, with the folders in both. Follows no symbolic link.
  private static func otherNames(of store: String, _ status: stat) -> [String] {
    let identity = FileIdentity(status)
    let wanted = min(Int(status.st_nlink) - 1, nameLimit)
    let own = store.parentFolder
    var names: [String] = []
    var entries = 0
    var listed: Set<String> = []

    /// Returns the folders in a folder.
    func search(_ folder: String) -> [String] {
      guard names.count < wanted, listed.insert(folder).inserted, let stream = opendir(folder)
      else { return [] }
      defer { closedir(stream) }
      var folders: [String] = []
      while names.count < wanted, entries < entryLimit, let entry = readdir(stream) {
        entries += 1
        let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
          String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        let path = folder == "/" ? "/" + name : folder + "/" + name
        var found = stat()
        guard name != ".", name != "..", path != store, lstat(path, &found) == 0 else { continue }
        if found.isFolder { folders.append(path) }
        if FileIdentity(found) == identity { names.append(path) }
      }
      return folders
    }
    for folder in [own, own.parentFolder] {
      for inner in search(folder) { _ = search(inner) }
    }
    return names.sorted()
  }
}
