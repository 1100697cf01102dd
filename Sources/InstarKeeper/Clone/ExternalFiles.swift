internal import CInstar
internal import Foundation
internal import GRDB
internal import InstarLinux
internal import InstarSchema
internal import InstarStore

/// The external values of a store, which are files beside it (Core Data layout, section 7), through one run.
///
/// A file is never overwritten, so a run copies none: the worker reads the store's own files, and writes new ones
/// beside the clone. Then, in this order:
///
/// 1. Each file that the old version references gets a second name beside the backup.
/// 2. After verification, the files that only the clone has are listed, durably, and get a name in the store's folder.
/// 3. The cutover: from here on the store's rows reference these files.
/// 4. Files that only the old version referenced are removed; the backup has them.
///
/// After a crash before step 3, a recovery finds the files of step 2 by their list, also those that were copied in
/// part, and removes them. The list is removed once the store's version is known.
struct ExternalFiles {
  /// `.NAME_SUPPORT` beside the store.
  let supportFolder: String

  private var folder: String { supportFolder + "/" + Self.dataFolder }
  private static let dataFolder = "_EXTERNAL_DATA"

  init(of paths: StorePaths) {
    supportFolder = paths.supportFolder
  }

  /// For a store, a clone or a backup.
  private init(supportFolder: String) {
    self.supportFolder = supportFolder
  }

  private static func ofFile(_ path: String) -> ExternalFiles {
    ExternalFiles(supportFolder: ExternalValues.supportFolder(ofStore: path))
  }

  /// The folder with the files; `nil` where it does not exist.
  ///
  /// - Throws: `unsafePath` where it, or the one above it, is not a folder: no link is followed.
  func existingFolder() throws(InstarError) -> String? {
    for path in [supportFolder, folder] {
      var status = stat()
      guard lstat(path, &status) == 0 else { return nil }
      guard status.st_mode & S_IFMT == S_IFDIR else {
        throw InstarError(
          .unsafePath, "cannot use the external values of the store",
          cause: "'\(path)' is not a folder", next: "replace '\(path)' by the folder itself")
      }
    }
    return folder
  }

  /// The number of files and their size; `nil` where the folder does not exist or cannot be listed.
  func count() -> (count: Int, bytes: Int64)? {
    guard let folder = try? existingFolder(), let stream = opendir(folder) else { return nil }
    defer { closedir(stream) }
    var (count, bytes): (Int, Int64) = (0, 0)
    while count < Self.countLimit, let entry = readdir(stream) {
      var status = stat()
      let isFound = withUnsafePointer(to: &entry.pointee.d_name) { field in
        field.withMemoryRebound(to: CChar.self, capacity: 256) { name in
          fstatat(dirfd(stream), name, &status, AT_SYMLINK_NOFOLLOW) == 0
        }
      }
      guard isFound, status.st_mode & S_IFMT == S_IFREG else { continue }
      count += 1
      bytes += Int64(status.st_size)
    }
    return (count, bytes)
  }

  /// Counting ends here.
  private static let countLimit = 100_000

  func has(_ name: String) -> Bool { Self.isFile("\(folder)/\(name)") }

  private static func isFile(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
  }

  // MARK: References

  /// The names of the files that the rows of a store reference.
  static func references(_ db: Database, _ layout: StoreLayout) throws -> Set<String> {
    var names: Set<String> = []
    for column in layout.externalColumns {
      let values = try Data.fetchCursor(
        db,
        sql: """
          SELECT CAST(\(column.column) AS BLOB) FROM \(column.table)
          WHERE substr(CAST(\(column.column) AS BLOB), 1, 1) = x'02'
            AND length(CAST(\(column.column) AS BLOB)) BETWEEN 37 AND 41
          """)
      while let value = try values.next() {
        if case .file(let name) = ExternalValues.Form(stored: value) { names.insert(name) }
      }
    }
    return names
  }

  // MARK: The steps

  /// Step 1: links the files beside a backup, or copies them where the backup is on another file system.
  ///
  /// - Throws: `backupFailed` or `noSpace`.
  func backUp(_ names: Set<String>, besideFile backup: String) throws(InstarError) {
    let present = names.filter(has)
    guard !present.isEmpty else { return }
    let target = Self.ofFile(backup)
    do throws(InstarError) {
      try target.makeFolders(mode: 0o700)
      for name in present {
        try Self.share("\(folder)/\(name)", as: "\(target.folder)/\(name)", mode: 0o600)
      }
      try target.synchronize()
    } catch {
      target.remove()
      throw InstarError(
        error.code == .noSpace ? .noSpace : .backupFailed, "cannot keep the backup",
        cause: error.cause, next: error.next)
    }
  }

  /// Removes the files beside a backup that is removed.
  static func removeBackup(besideFile backup: String) {
    ofFile(backup).remove()
  }

  /// - Parameter names: The files that rows of the clone reference, and rows of the store did not.
  /// - Throws: `brokenReferences` where one of them is missing.
  func requireFiles(_ names: Set<String>, ofClone clone: String) throws(InstarError) {
    let source = Self.ofFile(clone)
    let missing = names.filter { !has($0) && !source.isOwnFile($0) }
    guard let first = missing.min() else { return }
    throw InstarError(
      .brokenReferences, "cannot verify the migrated clone",
      cause: "\(missing.count) values reference missing files, such as '\(first)'",
      next: "set values through models in the plan's closures, not columns through SQL")
  }

  /// Step 2: links the files that only a clone has into the store's folder.
  ///
  /// - Parameters:
  ///   - store: The file whose readers may read the files.
  ///   - list: Where the files are listed first.
  /// - Returns: The linked files.
  /// - Throws: `writeBackFailed` or `noSpace`; none of the files is linked then.
  func adopt(
    _ names: Set<String>, ofClone clone: String, like store: String, listedIn list: String
  ) throws(InstarError) -> Set<String> {
    var status = stat()
    let mode = stat(store, &status) == 0 ? status.st_mode & 0o666 : 0o600
    let source = Self.ofFile(clone)
    let new = names.filter { !has($0) && source.isOwnFile($0) }
    guard !new.isEmpty else { return [] }
    do throws(InstarError) {
      try DurableFile.write(
        Data(new.sorted().joined(separator: "\n").utf8), to: list, mode: 0o600)
      // Readers of the files must be able to enter the folder.
      try makeFolders(mode: 0o700 | mode | (mode & 0o044) >> 2)
      for name in new {
        let path = "\(source.folder)/\(name)"
        chmod(path, mode)
        try DurableFile.synchronizeFile(path)
        try Self.share(path, as: "\(folder)/\(name)", mode: mode)
      }
      try synchronize()
    } catch {
      disown(new)
      unlink(list)
      throw InstarError(
        error.code == .noSpace ? .noSpace : .writeBackFailed,
        "cannot add the external values of the clone to the store", cause: error.cause,
        state: "unchanged", next: error.next)
    }
    return new
  }

  /// Returns the files that step 2 was about to give the store; empty where there is no list.
  ///
  /// - Throws: `unreadableStore` where the list cannot be read: its files would stay for ever.
  static func listed(in list: String) throws(InstarError) -> Set<String> {
    guard access(list, F_OK) == 0 else { return [] }
    guard let data = FileManager.default.contents(atPath: list) else {
      throw InstarError(
        .unreadableStore, "cannot read '\(list)'", cause: "user \(geteuid()) cannot read the file",
        next: "make it readable: chmod u+r '\(list)'")
    }
    let names = String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init)
    return Set(names.filter { UUID(uuidString: $0) != nil })
  }

  /// Undoes step 2, where the store was not written.
  func disown(_ names: Set<String>) {
    guard !names.isEmpty else { return }
    for name in names { unlink("\(folder)/\(name)") }
    // Succeeds only where the folders are empty.
    rmdir(folder)
    rmdir(supportFolder)
  }

  /// Step 4: removes the files that no row references any more, where the backup has them.
  func removeOrphans(_ names: Set<String>, besideFile backup: String) {
    let kept = Self.ofFile(backup)
    for name in names where kept.has(name) { unlink("\(folder)/\(name)") }
  }

  // MARK: Files

  /// Whether a file is a regular file with one name. A worker may have made something else.
  private func isOwnFile(_ name: String) -> Bool {
    var status = stat()
    return lstat("\(folder)/\(name)", &status) == 0 && status.st_mode & S_IFMT == S_IFREG
      && status.st_nlink == 1
  }

  /// Links a file, or copies it where it cannot be linked. An existing file stays: a name stands for one value.
  ///
  /// - Parameter mode: The mode of a copy.
  private static func share(
    _ source: String, as target: String, mode: mode_t
  ) throws(InstarError) {
    if link(source, target) == 0 || errno == EEXIST { return }
    guard errno == EXDEV || errno == EPERM || errno == EMLINK || errno == EOPNOTSUPP else {
      throw RunFolder.failure("cannot make '\(target)'", errno)
    }
    try copy(source, to: target, mode: mode)
  }

  /// Makes a durable copy of a file under an unused name.
  static func copy(_ source: String, to target: String, mode: mode_t) throws(InstarError) {
    let what = "cannot copy '\(source)'"
    do {
      try RunFolder.makeFile(target)
    } catch {
      throw InstarError(error, what: what)
    }
    do {
      try FileCopy.copy(source, to: target)
      guard chmod(target, mode) == 0 else {
        throw RunFolder.failure("cannot change the mode of '\(target)'", errno)
      }
      try DurableFile.synchronizeFile(target)
    } catch {
      unlink(target)
      throw InstarError(error, what: what)
    }
  }

  private func makeFolders(mode: mode_t) throws(InstarError) {
    for path in [supportFolder, folder] where mkdir(path, mode) != 0 {
      guard errno == EEXIST else { throw RunFolder.failure("cannot make '\(path)'", errno) }
    }
    guard try existingFolder() != nil else {
      throw RunFolder.failure("cannot use '\(folder)'", ENOENT)
    }
  }

  private func synchronize() throws(InstarError) {
    for path in [folder, supportFolder, (supportFolder as NSString).deletingLastPathComponent] {
      try DurableFile.synchronizeFolder(path)
    }
  }

  private func remove() {
    guard Self.isFolder(supportFolder) else { return }
    FolderRemoval.remove(supportFolder)
  }

  private static func isFolder(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }
}
