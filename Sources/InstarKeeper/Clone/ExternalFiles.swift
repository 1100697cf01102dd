internal import CInstar
internal import Foundation
internal import GRDB
internal import InstarLinux
internal import InstarSchema
internal import InstarStore

/// The external values of a store, which are files beside it (Core Data layout, section 7), through one run.
///
/// No file is ever overwritten, so a run copies none: the worker reads the store's own files, and writes new files
/// beside the clone. Then, in this order:
///
/// 1. Each file that the old version references gets a second name beside the backup.
/// 2. After verification, the files that only the clone references and those that only the old version references are
///    listed, durably. Then the new files get a name in the store's folder.
/// 3. The cutover: from here on the store's rows reference the new files.
/// 4. The files that only the old version referenced are removed, where no other store may have its files in the same
///    folder; the backup has them. Then the list is removed.
///
/// After a crash a recovery finds the files in their list. Before step 3 it removes the new files, even if they were
/// copied only in part; after step 3 it removes the old files. The list stays until these removals are on disk.
struct ExternalFiles {
  /// `.NAME_SUPPORT` beside the store.
  let supportFolder: String
  /// The store's own paths; `nil` for a clone or a backup, which have a folder for themselves.
  private let paths: StorePaths?
  /// Whether a file of a value may have other names too: a store shares its files with its backups by hard links.
  private var mayHaveOtherNames = true

  private var folder: String { supportFolder + "/" + Self.dataFolder }
  private static let dataFolder = "_EXTERNAL_DATA"

  init(of paths: StorePaths) {
    supportFolder = paths.supportFolder
    self.paths = paths
  }

  /// For a store, a clone or a backup.
  private init(supportFolder: String) {
    self.supportFolder = supportFolder
    paths = nil
  }

  private static func ofFile(_ path: String) -> ExternalFiles {
    ExternalFiles(supportFolder: ExternalValues.supportFolder(ofStore: path))
  }

  /// The files beside a backup.
  static func ofBackup(_ backup: String) -> ExternalFiles { ofFile(backup) }

  /// The files beside a clone. A worker may have made anything there, so only a regular file with one name counts.
  static func ofClone(_ clone: String) -> ExternalFiles {
    var files = ofFile(clone)
    files.mayHaveOtherNames = false
    return files
  }

  /// The folder with the files; `nil` where it does not exist.
  ///
  /// - Throws: `unsafePath` where it, or the one above it, is not a folder: no symbolic link is followed.
  func existingFolder() throws(InstarError) -> String? {
    for path in [supportFolder, folder] {
      var status = stat()
      guard lstat(path, &status) == 0 else { return nil }
      guard status.isFolder else {
        throw InstarError(
          .unsafePath, "cannot use the store's files of large values",
          cause: "'\(path)' is not a folder", next: "replace '\(path)' with the folder itself")
      }
    }
    return folder
  }

  /// The names of all files.
  func names() -> Set<String> {
    var names: Set<String> = []
    _ = forEachFile(upTo: .max) { name, _ in
      if UUID(uuidString: name) != nil { names.insert(name) }
    }
    return names
  }

  /// The number of files and their size; `nil` where the folder does not exist or cannot be listed.
  ///
  /// - Parameter limit: The number of files at which counting ends.
  func count(upTo limit: Int = 100_000) -> (count: Int, bytes: Int64)? {
    var (count, bytes): (Int, Int64) = (0, 0)
    let isListed = forEachFile(upTo: limit) { _, size in
      count += 1
      bytes += size
    }
    return isListed ? (count, bytes) : nil
  }

  /// - Returns: `false` where the folder does not exist or cannot be listed.
  private func forEachFile(
    upTo limit: Int, _ body: (_ name: String, _ bytes: Int64) -> Void
  ) -> Bool {
    guard let folder = try? existingFolder(), let stream = opendir(folder) else {
      return false
    }
    defer { closedir(stream) }
    var count = 0
    while count < limit, let entry = readdir(stream) {
      var status = stat()
      let name = withUnsafePointer(to: &entry.pointee.d_name) { field in
        field.withMemoryRebound(to: CChar.self, capacity: 256) { name in
          fstatat(dirfd(stream), name, &status, AT_SYMLINK_NOFOLLOW) == 0
            ? String(cString: name) : nil
        }
      }
      guard let name, status.isRegular else { continue }
      count += 1
      body(name, Int64(status.st_size))
    }
    return true
  }

  func has(_ name: String) -> Bool { size(of: name) != nil }

  /// The number and size of the named files that exist.
  func measure(_ names: Set<String>) -> (count: Int, bytes: Int64) {
    let sizes = names.compactMap(size(of:))
    return (sizes.count, sizes.reduce(0, +))
  }

  private func size(of name: String) -> Int64? {
    var status = stat()
    guard lstat("\(folder)/\(name)", &status) == 0, status.isRegular,
      mayHaveOtherNames || status.st_nlink == 1
    else { return nil }
    return Int64(status.st_size)
  }

  // MARK: References

  /// The names of the files that the rows of a store reference.
  static func references(_ db: Database, _ layout: any StoreLayout) throws -> Set<String> {
    var names: Set<String> = []
    for column in layout.externalColumns {
      try names.formUnion(references(db, column.column, of: column.table))
    }
    return names
  }

  /// The names of those of these files that the rows of a store of unknown schema reference: a value that names one of
  /// the files by its UUID references it.
  func references(_ db: Database, in structure: StoreStructure) throws -> Set<String> {
    guard try existingFolder() != nil else { return [] }
    var names: Set<String> = []
    for table in structure.tables {
      for column in table.columns where column.type.uppercased() == "BLOB" {
        try names.formUnion(
          Self.references(db, SQLIdentifier.sql(column.name), of: SQLIdentifier.sql(table.name)))
      }
    }
    return names
  }

  /// - Parameters:
  ///   - column: As written in SQL.
  ///   - table: As written in SQL.
  private static func references(
    _ db: Database, _ column: String, of table: String
  ) throws -> Set<String> {
    var names: Set<String> = []
    let values = try Data.fetchCursor(
      db,
      sql: """
        SELECT CAST(\(column) AS BLOB) FROM \(table)
        WHERE substr(CAST(\(column) AS BLOB), 1, 1) = x'02'
          AND length(CAST(\(column) AS BLOB)) BETWEEN 37 AND 41
        """)
    while let value = try values.next() {
      if case .file(let name) = ExternalValues.Form(stored: value) { names.insert(name) }
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

  /// Copies files beside another file, durably. An existing file stays: each copy gets its name when it is whole.
  ///
  /// - Parameters:
  ///   - run: The run of the backup with the files. What a killed copy of this backup left is removed: the caller has
  ///     the backup's lock, so nobody else makes one.
  ///   - mode: Of the other file: who may read that may read the copies.
  /// - Returns: The copies that this call made.
  /// - Throws: Why they cannot be made; none is left then.
  @discardableResult
  func copy(
    _ names: Set<String>, besideFile file: String, ofRun run: String, mode: mode_t = 0o600
  ) throws(InstarError) -> Copies {
    let target = Self.ofFile(file)
    var copies = Copies(files: target)
    let present = names.filter { has($0) && !target.has($0) }
    guard !present.isEmpty else { return copies }
    do throws(InstarError) {
      try target.makeFolders(mode: Self.folderMode(forFilesOf: mode))
      let unfinished = ".\(run).part"
      try target.removeFiles(withSuffix: unfinished)
      for name in present {
        let (copy, partial) = ("\(target.folder)/\(name)", "\(target.folder)/\(name)\(unfinished)")
        try Self.copy("\(folder)/\(name)", to: partial, mode: mode)
        guard instar_rename_no_replace(AT_FDCWD, partial, AT_FDCWD, copy) == 0 else {
          let code = errno
          unlink(partial)
          throw RunFiles.failure("cannot create '\(copy)'", code)
        }
        copies.names.insert(name)
      }
      try target.synchronize()
    } catch {
      copies.remove()
      throw error
    }
    return copies
  }

  private func removeFiles(withSuffix suffix: String) throws(InstarError) {
    for name in try FolderNames.all(in: folder, suffix: suffix) {
      guard unlink("\(folder)/\(name)") == 0 || errno == ENOENT else {
        throw RunFiles.failure("cannot remove '\(folder)/\(name)'", errno)
      }
    }
  }

  /// The files that `copy` made beside another file.
  struct Copies {
    fileprivate let files: ExternalFiles
    fileprivate var names: Set<String> = []

    /// Removes the copies, and their folders where nothing else is in them.
    func remove() {
      if files.remove(names) { files.removeEmptyFolders() }
    }
  }

  /// Removes the files beside a backup that is removed.
  static func removeBackup(besideFile backup: String) {
    ofFile(backup).remove()
  }

  /// - Parameter names: The files that rows of the clone reference, and rows of the store did not.
  /// - Throws: `brokenReferences` where one of them is missing.
  func requireFiles(_ names: Set<String>, ofClone clone: String) throws(InstarError) {
    let source = Self.ofClone(clone)
    let missing = names.filter { !has($0) && !source.has($0) }
    guard let first = missing.min() else { return }
    throw InstarError(
      .brokenReferences, "cannot verify the migrated clone",
      cause: "\(missing.count) values reference missing files, such as '\(first)'",
      next: "set values through models in the plan's closures, not columns through SQL")
  }

  /// The files that a run adds to a store's folder or removes from it.
  struct Changes {
    /// The files that only the new version references.
    var added: Set<String> = []
    /// The files that only the old version references.
    var removed: Set<String> = []

    var isEmpty: Bool { added.isEmpty && removed.isEmpty }

    init() {}

    init(added: Set<String>, removed: Set<String>) {
      self.added = added
      self.removed = removed
    }

    private static let removedMark: Character = "-"

    /// Reads a list. Without a list there are no changes.
    ///
    /// - Throws: `unreadableStore` where the list cannot be read. Ignoring it would leave its files for ever.
    init(listedIn list: String) throws(InstarError) {
      guard access(list, F_OK) == 0 else { return }
      guard let data = FileManager.default.contents(atPath: list) else {
        throw InstarError(
          .unreadableStore, "cannot read '\(list)'",
          cause: "user \(ProcessIdentity.label(of: geteuid())) cannot read the file",
          next: "run: chmod u+r '\(list)'")
      }
      for line in String(decoding: data, as: UTF8.self).split(separator: "\n") {
        let isRemoved = line.first == Self.removedMark
        let name = String(isRemoved ? line.dropFirst() : line)
        guard UUID(uuidString: name) != nil else { continue }
        if isRemoved { removed.insert(name) } else { added.insert(name) }
      }
    }

    func write(to list: String) throws(InstarError) {
      let lines = added.sorted() + removed.sorted().map { "\(Self.removedMark)\($0)" }
      try DurableFile.write(Data(lines.joined(separator: "\n").utf8), to: list, mode: 0o600)
    }
  }

  /// Step 2: lists the changes, and links the files that the store does not have into its folder.
  ///
  /// - Parameters:
  ///   - names: The files that the clone references.
  ///   - source: The files beside the clone, or beside the backup that it was copied from.
  ///   - before: The files that the store references.
  ///   - store: The file whose readers may read the files.
  ///   - list: Where the changes are listed first.
  /// - Returns: The changes.
  /// - Throws: `writeBackFailed` or `noSpace`; none of the files is linked then.
  func adopt(
    _ names: Set<String>, from source: ExternalFiles, before: Set<String>, like store: String,
    listedIn list: String
  ) throws(InstarError) -> Changes {
    var status = stat()
    let mode = stat(store, &status) == 0 ? status.st_mode & 0o666 : 0o600
    let changes = Changes(
      added: names.filter { !has($0) && source.has($0) }, removed: before.subtracting(names))
    guard !changes.isEmpty else { return changes }
    do throws(InstarError) {
      try changes.write(to: list)
      guard !changes.added.isEmpty else { return changes }
      try makeFolders(mode: Self.folderMode(forFilesOf: mode))
      for name in changes.added {
        let path = "\(source.folder)/\(name)"
        chmod(path, mode)
        try DurableFile.synchronizeFile(path)
        try Self.share(path, as: "\(folder)/\(name)", mode: mode)
      }
      try synchronize()
    } catch {
      disown(changes, listedIn: list)
      throw InstarError(
        error.code == .noSpace ? .noSpace : .writeBackFailed,
        "cannot add the clone's files of large values to the store", cause: error.cause,
        state: "unchanged", next: error.next)
    }
    return changes
  }

  /// Undoes step 2, where the store was not written. The list stays where a file cannot be removed.
  func disown(_ changes: Changes, listedIn list: String) {
    guard !changes.isEmpty else { return }
    let areGone = remove(changes.added)
    if !changes.added.isEmpty { removeEmptyFolders() }
    finish(areGone, list)
  }

  /// Step 4: removes the files that no row references now, if the backup has them. The list stays where a file
  /// cannot be removed.
  ///
  /// - Returns: Which files stay because rows of another store may reference them; `nil` where none do.
  func removeOrphans(
    _ changes: Changes, besideFile backup: String, listedIn list: String
  ) -> String? {
    guard !changes.isEmpty else { return nil }
    let orphans = changes.removed.filter(Self.ofFile(backup).has)
    let reason: String?
    do throws(InstarError) {
      reason = try orphans.isEmpty ? nil : otherStore().map { "'\($0)' may reference them" }
    } catch {
      reason = "another store may reference them (\(error.what): \(error.cause))"
    }
    finish(reason != nil || remove(orphans), list)
    return reason.map {
      let files =
        orphans.count == 1 ? "1 file of a large value" : "\(orphans.count) files of large values"
      return "\(files) that the store no longer references "
        + "\(orphans.count == 1 ? "stays" : "stay") in '\(folder)': \($0)"
    }
  }

  /// A file beside the store that may be another store with its values in the same folder: only the ends of their names
  /// differ. A store that was copied to such a name references the same files.
  ///
  /// Its size decides, because a SQLite file has whole pages. To open and close a store would drop the locks that an
  /// app's connection in this process has on it.
  private func otherStore() throws(InstarError) -> String? {
    guard let paths else { return nil }
    let base = (supportFolder as NSString).lastPathComponent.dropFirst()
      .dropLast("_SUPPORT".count)
    let names = try FolderNames.all(
      in: paths.folder.isEmpty ? "/" : paths.folder, prefix: String(base))
    return names.sorted().map { "\(paths.folder)/\($0)" }.first { path in
      var status = stat()
      return ExternalValues.supportFolder(ofStore: path) == supportFolder
        && path != paths.store && !SideFile.paths(of: paths.store).contains(path)
        && lstat(path, &status) == 0 && status.isRegular
        && status.st_size >= Self.smallestPage && status.st_size % Self.smallestPage == 0
    }
  }

  private static let smallestPage: off_t = 512

  /// - Returns: Whether the files are gone.
  private func remove(_ names: Set<String>) -> Bool {
    var areGone = true
    for name in names where unlink("\(folder)/\(name)") != 0 && errno != ENOENT { areGone = false }
    return areGone
  }

  private func removeEmptyFolders() {
    // Succeeds only where the folders are empty.
    rmdir(folder)
    rmdir(supportFolder)
  }

  /// Removes the list once the removal of the files is on disk. After a loss of power a removed file could come back,
  /// and without the list nobody would remove it.
  private func finish(_ areGone: Bool, _ list: String) {
    // Where a folder was removed too, the one above it has the last change.
    let changed = parents.first(where: Self.isFolder)
    guard areGone, let changed, (try? DurableFile.synchronizeFolder(changed)) != nil else { return }
    unlink(list)
  }

  // MARK: Files

  /// Links a file, or copies it where it cannot be linked. An existing file stays: a name stands for one value.
  ///
  /// - Parameter mode: The mode of a copy.
  private static func share(
    _ source: String, as target: String, mode: mode_t
  ) throws(InstarError) {
    if link(source, target) == 0 || errno == EEXIST { return }
    guard errno == EXDEV || errno == EPERM || errno == EMLINK || errno == EOPNOTSUPP else {
      throw RunFiles.failure("cannot create '\(target)'", errno)
    }
    try copy(source, to: target, mode: mode)
  }

  /// Makes a durable copy of a file under an unused name.
  static func copy(_ source: String, to target: String, mode: mode_t) throws(InstarError) {
    let what = "cannot copy '\(source)'"
    do {
      try RunFiles.makeFile(target)
    } catch {
      throw InstarError(error, what: what)
    }
    do {
      try FileCopy.copy(source, to: target)
      guard chmod(target, mode) == 0 else {
        throw RunFiles.failure("cannot change the mode of '\(target)'", errno)
      }
      try DurableFile.synchronizeFile(target)
    } catch {
      unlink(target)
      throw InstarError(error, what: what)
    }
  }

  /// Readers of the files must be able to enter their folder, and their writers to add others.
  private static func folderMode(forFilesOf mode: mode_t) -> mode_t {
    0o700 | mode | (mode & 0o044) >> 2
  }

  private func makeFolders(mode: mode_t) throws(InstarError) {
    for path in [supportFolder, folder] {
      if mkdir(path, mode) != 0 {
        guard errno == EEXIST else { throw RunFiles.failure("cannot create '\(path)'", errno) }
      } else if chmod(path, mode) != 0 {
        // A keeper's umask leaves its owner's rights only.
        throw RunFiles.failure("cannot set the mode of '\(path)'", errno)
      }
    }
    guard try existingFolder() != nil else {
      throw RunFiles.failure("cannot use '\(folder)'", ENOENT)
    }
  }

  private func synchronize() throws(InstarError) {
    for path in parents { try DurableFile.synchronizeFolder(path) }
  }

  /// The folder of the files, and those above it up to the store's.
  private var parents: [String] {
    [folder, supportFolder, supportFolder.parentFolder]
  }

  private func remove() {
    guard Self.isFolder(supportFolder) else { return }
    FolderRemoval.remove(supportFolder)
  }

  private static func isFolder(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0 && status.isFolder
  }
}
