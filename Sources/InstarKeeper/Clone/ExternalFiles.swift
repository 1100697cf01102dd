internal import CInstar
internal import Foundation
internal import GRDB
internal import InstarLinux
internal import InstarSchema
internal import InstarStore

/// The files in which a store keeps its large values (Core Data layout, section 7), through one run.
///
/// A file is never written over, so that no run has to copy any: the worker reads the store's own, and writes new ones
/// beside the clone. Then, in this order:
///
/// 1. the backup gets a name of its own for each file that the old version refers to;
/// 2. after verification, the files that only the clone has are listed, durably, and get a name in the store's folder too;
/// 3. the store is written back: from here on its rows refer to these;
/// 4. files that only the old version referred to go; the backup has them.
///
/// Cut off before 3, the files of step 2 are found again by their list, and removed: that says it also of files that had
/// to be copied, and of those that were copied in part. The list goes when it is known at which version the store is.
struct ExternalFiles {
  /// `.NAME_SUPPORT` beside the store.
  let supportFolder: String

  private var folder: String { supportFolder + "/" + Self.dataFolder }
  private static let dataFolder = "_EXTERNAL_DATA"

  init(of paths: StorePaths) {
    supportFolder = paths.supportFolder
  }

  /// Of a store, a clone or a backup.
  private init(supportFolder: String) {
    self.supportFolder = supportFolder
  }

  private static func ofFile(_ path: String) -> ExternalFiles {
    ExternalFiles(supportFolder: ExternalValues.supportFolder(ofStore: path))
  }

  /// The folder with the files; `nil` where there is none.
  ///
  /// - Throws: `unsafePath` where it, or the one above it, is no folder: nothing is followed.
  func existingFolder() throws(InstarError) -> String? {
    for path in [supportFolder, folder] {
      var status = stat()
      guard lstat(path, &status) == 0 else { return nil }
      guard status.st_mode & S_IFMT == S_IFDIR else {
        throw InstarError(
          .unsafePath, "cannot use the large values of a store",
          cause: "'\(path)' is no folder", next: "put the folder itself there")
      }
    }
    return folder
  }

  /// How many files there are, and what they take; `nil` where there is no folder of them.
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

  /// So far is counted.
  private static let countLimit = 100_000

  func has(_ name: String) -> Bool { Self.isFile("\(folder)/\(name)") }

  private static func isFile(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
  }

  // MARK: Which files a store refers to

  /// The names of the files that the rows of a store refer to.
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

  /// Step 1: gives the files a name beside a backup, or copies them where it lies on another file system.
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

  /// Removes the files beside a backup that goes.
  static func removeBackup(besideFile backup: String) {
    ofFile(backup).remove()
  }

  /// - Parameter names: The files that rows of a clone refer to, and those of the store did not.
  /// - Throws: `brokenReferences` where one of them is not there.
  func requireFiles(_ names: Set<String>, ofClone clone: String) throws(InstarError) {
    let source = Self.ofFile(clone)
    let missing = names.filter { !has($0) && !source.isOwnFile($0) }
    guard let first = missing.min() else { return }
    throw InstarError(
      .brokenReferences, "cannot verify the migrated clone",
      cause: "\(missing.count) values are kept in files that are not there, such as '\(first)'",
      next: "let the stages set values, not what stands in their columns")
  }

  /// Step 2: gives the files that only a clone has a name in the store's folder.
  ///
  /// - Parameters:
  ///   - store: Who may read it may read them.
  ///   - list: Where they are listed before.
  /// - Returns: Those that got one.
  /// - Throws: `writeBackFailed` or `noSpace`; none of them is there then.
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
      // Who may read files may enter the folder that they are in.
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
        "cannot put the large values of the clone in their place", cause: error.cause,
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

  /// Undoes step 2, for a store that was not written.
  func disown(_ names: Set<String>) {
    guard !names.isEmpty else { return }
    for name in names { unlink("\(folder)/\(name)") }
    // Only where this run has made them.
    rmdir(folder)
    rmdir(supportFolder)
  }

  /// Step 4: removes the files that a backup has and that no row refers to any more.
  func removeOrphans(_ names: Set<String>, besideFile backup: String) {
    let kept = Self.ofFile(backup)
    for name in names where kept.has(name) { unlink("\(folder)/\(name)") }
  }

  // MARK: Files

  /// Whether a file is one of its own: no link, and under no other name. A worker may have made it.
  private func isOwnFile(_ name: String) -> Bool {
    var status = stat()
    return lstat("\(folder)/\(name)", &status) == 0 && status.st_mode & S_IFMT == S_IFREG
      && status.st_nlink == 1
  }

  /// A name more for a file, or a copy where that is not to be had. What has the name already stays: a name stands for
  /// one value.
  ///
  /// - Parameter mode: Of a copy.
  private static func share(
    _ source: String, as target: String, mode: mode_t
  ) throws(InstarError) {
    if link(source, target) == 0 || errno == EEXIST { return }
    guard errno == EXDEV || errno == EPERM || errno == EMLINK || errno == EOPNOTSUPP else {
      throw RunFolder.failure("cannot make '\(target)'", errno)
    }
    try copy(source, to: target, mode: mode)
  }

  /// Makes a durable copy of a file under a name that is free.
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
        throw RunFolder.failure("cannot change who may read '\(target)'", errno)
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
