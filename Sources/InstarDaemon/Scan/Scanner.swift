import Foundation
import InstarConfiguration
import InstarLinux
import InstarSchema

/// Reads the listing of a watched folder.
///
/// A folder is passed to `willEnter` *before* it is listed, so that it can be watched first: a store that is created in
/// between is then found twice rather than never.
struct Scanner: Sendable {
  /// A file whose name matches.
  struct Store: Sendable, Hashable {
    /// The absolute path of the store.
    var path: String
    /// The version of its file during the scan.
    var version: WatchedVersion
  }

  /// What one pass found.
  struct Findings: Sendable {
    /// The stores that match the watch.
    var stores: [Store] = []
    /// What was left out: folders that cannot be read, names that are not UTF-8, and files with a store's name that are
    /// not regular files. Also a file system that is read-only. At most `problemLimit`: any user may make a million
    /// such files.
    private(set) var problems: [InstarError] = []
    /// Whether more was left out than `problems` says.
    private(set) var hasMoreProblems = false

    mutating func add(_ problem: InstarError) {
      if problems.count < Scanner.problemLimit {
        problems.append(problem)
      } else {
        hasMoreProblems = true
      }
    }

    /// Adds what another pass found.
    mutating func add(_ other: Findings) {
      stores += other.stores
      for problem in other.problems { add(problem) }
      if other.hasMoreProblems { hasMoreProblems = true }
    }
  }

  static let problemLimit = 100

  /// The configured folder that is scanned.
  var watch: Configuration.Watch

  /// A scanner of one configured folder. Nothing is read before the first scan.
  init(watch: Configuration.Watch) {
    self.watch = watch
  }

  /// Lists the watch, or one folder below it.
  ///
  /// - Parameters:
  ///   - folder: where to begin; the folder of the watch when left out.
  ///   - onEntry: called before each folder and each file of a store is read.
  ///   - willEnter: called with every folder before it is listed; what it returns is one of the findings' problems, and
  ///     the folder is listed nevertheless: a folder that cannot be watched is still read at each rescan.
  /// - Throws: `watchFailed` when `folder` itself cannot be read. A folder further down that cannot be read is one of
  ///   the findings' problems.
  func scan(
    from folder: String? = nil, onEntry: () -> Void = {}, willEnter: (String) -> InstarError?
  ) throws(InstarError) -> Findings {
    var findings = Findings()
    let first = folder ?? watch.folder
    if let problem = Scanner.writeProblem(of: first) { findings.add(problem) }
    var folders = [first]
    while let folder = folders.popLast() {
      let problem = willEnter(folder)
      do {
        onEntry()
        folders += try list(folder, into: &findings, onEntry)
        if let problem { findings.add(problem) }
      } catch {
        guard folder != first else { throw error }
        findings.add(error)
      }
    }
    return findings
  }

  /// Adds the stores of one folder, and returns the folders in it that are to be entered too.
  private func list(
    _ folder: String, into findings: inout Findings, _ onEntry: () -> Void
  ) throws(InstarError) -> [String] {
    guard let directory = opendir(folder) else {
      throw Scanner.watchFailed(folder, errno)
    }
    defer { closedir(directory) }
    var names: Set<String> = []
    var hasBadName = false
    var folders: [String] = []
    let prefix = folder == "/" ? "/" : folder + "/"
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        String(validating: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      guard let name else {
        if !hasBadName { findings.add(Self.nameProblem(in: folder)) }
        hasBadName = true
        continue
      }
      if name == "." || name == ".." { continue }
      let type = Int32(entry.pointee.d_type)
      if !StoreName.isPrivateFolder(name), watch.enters(prefix + name),
        type == Int32(DT_DIR)
          || (type == Int32(DT_UNKNOWN) && Scanner.isFolder(prefix + name))
      {
        folders.append(prefix + name)
      } else if type != Int32(DT_DIR) {
        names.insert(name)
      }
    }
    guard watch.holdsStores(in: folder) else { return folders.sorted(by: >) }
    let rights = FolderRights(above: folder)
    for name in names.sorted() where StoreName.matches(name, patterns: watch.patterns) {
      let path = prefix + name
      onEntry()
      if let version = WatchedVersion(
        name, in: dirfd(directory), hasLog: names.contains(SideFile.log.path(of: name)),
        folders: rights)
      {
        findings.stores.append(Store(path: path, version: version))
      } else if let problem = Scanner.kindProblem(of: path) {
        findings.add(problem)
      }
    }
    return folders.sorted(by: >)
  }

  private static func nameProblem(in folder: String) -> InstarError {
    InstarError(
      .unsafePath, "cannot use a file in '\(folder)'",
      cause: "the file's name is not UTF-8", state: "unchanged",
      next: "to find the file, run: ls -lb \(CommandText.quoted(folder)); if it is a store, "
        + "rename it")
  }

  /// Is the path a folder? A symbolic link to one is not.
  static func isFolder(_ path: String) -> Bool {
    stat(of: path)?.isFolder == true
  }

  /// Why a file with a store's name is not used: only regular files are stores, and symbolic links are not followed.
  /// `nil` for a regular file, a folder, and where there is no file.
  static func kindProblem(of path: String) -> InstarError? {
    guard let status = stat(of: path), !status.isFolder, let kind = status.irregularKind else {
      return nil
    }
    return InstarError(
      .unsafePath, "cannot use '\(path)' as a store", store: path,
      cause: "\(kind) of user \(ProcessIdentity.label(of: status.st_uid)), not a regular file",
      state: "not opened",
      next: status.isLink
        ? "watch the folder that contains the store itself"
        : "narrow the watch's 'pattern', or remove '\(path)' if no app uses it")
  }

  /// Why no store below a folder can be written: a service sees the file system as read-only, except for the folders
  /// that its unit names. `nil` where they can.
  static func writeProblem(of folder: String) -> InstarError? {
    var status = statvfs()
    guard statvfs(folder, &status) == 0, status.f_flag & UInt(ST_RDONLY) != 0 else {
      return nil
    }
    return InstarError(
      .watchFailed, "cannot migrate the stores in '\(folder)'",
      cause: "the service sees the file system there as read-only", state: "unchanged",
      next: unitRemedy)
  }

  /// Lets the service write the watched folders, from its next start on.
  private static let unitRemedy = "run: instarctl config apply && systemctl restart instard"

  static func watchFailed(_ folder: String, _ number: Int32) -> InstarError {
    InstarError(
      .watchFailed, "cannot watch '\(folder)'", cause: String(cString: strerror(number)),
      state: "its stores are not migrated",
      next: ServiceDropIn.isInHome(folder)
        ? "create the folder if it is missing, then \(unitRemedy)"
        : number == ENOENT
          ? "create the folder, or remove it from the configuration"
          : "let user \(ProcessIdentity.label(of: geteuid())) read the folder")
  }
}
