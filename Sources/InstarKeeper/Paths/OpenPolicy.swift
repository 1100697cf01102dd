internal import InstarLinux
internal import InstarSchema
internal import InstarStore

/// Which stores a keeper may open.
///
/// - `.own`: only stores on a path that nobody but this process's user and root can change. The file is identified
///   three times, and each must find the same device and inode: along the path, on which the kernel follows no symbolic
///   link (`StoreTrust`), by its probe (`StoreFile`), and by SQLite (`StoreLock`).
/// - `.any`: any store, because a person named it. The path is not checked.
/// - `.shared`: any store, which this process may also have open elsewhere, as an app does. Only SQLite opens
///   descriptors of it: closing another one would drop SQLite's locks.
public enum OpenPolicy: Sendable, Hashable {
  case any
  case own
  case shared

  /// Checks the path of a store.
  ///
  /// - Parameter folders: Of the batch that the store is in; `nil` for a single store.
  /// - Returns: The file that a probe must find; `nil` where any file will do.
  /// - Throws: `unsafePath`, or why the store cannot be reached.
  func confirm(
    _ store: String, folders: TrustedFolders? = nil
  ) throws(InstarError) -> FileIdentity? {
    switch self {
    case .any, .shared: nil
    case .own: try StoreTrust(owner: ProcessIdentity.ownUser, folders: folders).confirm(store)
    }
  }

  /// Probes a store for a run.
  ///
  /// - Parameters:
  ///   - versionSources: Where plans look for the version of a plain store.
  ///   - busyTimeout: Seconds to wait for a process that is writing.
  func probe(
    _ store: String, versionSources: Set<VersionSource>, busyTimeout: Double
  ) throws(InstarError) -> StoreProbe {
    if self == .shared {
      return try StoreProbe.readShared(
        store, versionSources: versionSources, busyTimeout: busyTimeout)
    }
    return try probe(store) { path throws(InstarError) in
      try StoreProbe.read(path, versionSources: versionSources, busyTimeout: busyTimeout)
    }
  }

  /// Probes a store: checks its path first, and then that the probed file is the one on that path.
  func probe(
    _ store: String, folders: TrustedFolders? = nil,
    _ read: (String) throws(InstarError) -> StoreProbe
  ) throws(InstarError) -> StoreProbe {
    let confirmed = try confirm(store, folders: folders)
    let probe = try read(store)
    try require(confirmed, probe.file)
    return probe
  }

  /// Probes the store's file again, on its checked path.
  func probeFile(_ store: String) throws(InstarError) -> StoreFile {
    if self == .shared { return try StoreFile.probeWithoutOpening(store) }
    let confirmed = try confirm(store)
    let file = try StoreFile.probe(store)
    try require(confirmed, file)
    return file
  }

  private func require(
    _ confirmed: FileIdentity?, _ file: StoreFile
  ) throws(InstarError) {
    guard let confirmed else { return }
    guard confirmed == file.state.identity else {
      throw InstarError(
        .storeChanged, "cannot open '\(file.path)'", store: file.path,
        cause: "the file was replaced while it was probed", state: "unchanged",
        next: CommandText.repetition)
    }
  }
}
