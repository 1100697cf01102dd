import Foundation
public import InstarSchema

/// Reads the listing of a watched folder.
///
/// A folder is announced to `willEnter` *before* it is listed, so that it can be watched first: a
/// store that is made in between is then found twice rather than never.
public struct Scanner: Sendable {
  /// A file whose name matches.
  public struct Store: Sendable, Hashable {
    public var path: String
    public var version: FileVersion
  }

  /// What one pass found.
  public struct Findings: Sendable {
    public var stores: [Store] = []
    /// What was left out: folders that cannot be read, names that are not UTF-8.
    public var problems: [InstarError] = []
  }

  public var watch: Configuration.Watch

  public init(watch: Configuration.Watch) {
    self.watch = watch
  }

  /// Lists the watch, or one folder below it.
  ///
  /// - Parameters:
  ///   - folder: where to begin; the folder of the watch when left out.
  ///   - willEnter: called with every folder before it is listed; what it returns is one of the
  ///     findings' problems, and the folder is listed nevertheless: a folder that cannot be watched
  ///     is still read at each rescan.
  /// - Throws: `watchFailed` when `folder` itself cannot be read. A folder further down that cannot
  ///   be read is one of the findings' problems.
  public func scan(
    from folder: String? = nil, willEnter: (String) -> InstarError?
  ) throws(InstarError) -> Findings {
    var findings = Findings()
    let first = folder ?? watch.folder
    var folders = [first]
    while let folder = folders.popLast() {
      let problem = willEnter(folder)
      do {
        folders += try list(folder, into: &findings)
        if let problem { findings.problems.append(problem) }
      } catch {
        guard folder != first else { throw error }
        findings.problems.append(error)
      }
    }
    return findings
  }

  /// Adds the stores of one folder, and returns the folders in it that are to be entered too.
  private func list(
    _ folder: String, into findings: inout Findings
  ) throws(InstarError) -> [String] {
    guard let directory = opendir(folder) else {
      throw Scanner.watchFailed(folder, errno)
    }
    defer { closedir(directory) }
    var names: Set<String> = []
    var folders: [String] = []
    let prefix = folder == "/" ? "/" : folder + "/"
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        String(validating: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      guard let name else {
        findings.problems.append(
          InstarError(
            .unsafePath, "cannot look at a file in '\(folder)'",
            cause: "its name is not UTF-8", state: "unchanged",
            next: "rename the file if it is a store"))
        continue
      }
      if name == "." || name == ".." { continue }
      let type = Int32(entry.pointee.d_type)
      if watch.isRecursive, !StoreName.isPrivateFolder(name),
        type == Int32(DT_DIR)
          || (type == Int32(DT_UNKNOWN) && Scanner.isFolder(prefix + name))
      {
        folders.append(prefix + name)
      } else if type == Int32(DT_REG) || type == Int32(DT_UNKNOWN) {
        names.insert(name)
      }
    }
    for name in names.sorted() where StoreName.matches(name, patterns: watch.patterns) {
      let path = prefix + name
      if let version = FileVersion(path: path, hasLog: names.contains(name + "-wal")) {
        findings.stores.append(Store(path: path, version: version))
      }
    }
    return folders.sorted(by: >)
  }

  /// Is the path a folder? A symbolic link to one is not.
  static func isFolder(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  static func watchFailed(_ folder: String, _ number: Int32) -> InstarError {
    InstarError(
      .watchFailed, "cannot watch '\(folder)'", cause: String(cString: strerror(number)),
      state: "the stores in it are not looked at",
      next: number == ENOENT
        ? "make the folder, or take it out of the configuration"
        : "let the daemon's user read the folder")
  }
}
