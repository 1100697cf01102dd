internal import InstarLinux
internal import InstarSchema
internal import InstarStore

/// Which stores a keeper opens.
///
/// With `.own` every store is met three times: on a way that is in the hands of this process's user
/// and of root alone and on which the kernel follows no symbolic link (`StoreTrust`), by the look at
/// its file (`StoreFile`), and by SQLite (`StoreLock`). Each must have met the same device and
/// inode. With `.any` the first is left out: the caller has named the store himself.
///
/// With `.shared` this process may have the store open otherwise, as an app has. No descriptor of it
/// is then opened but by SQLite, which knows that closing one drops the locks of all the others.
public enum OpenPolicy: Sendable, Hashable {
  case any
  case own
  case shared

  /// - Returns: What the look at the store must find; `nil` where that does not matter.
  /// - Throws: `unsafePath`, or why the store cannot be reached.
  func confirm(_ store: String) throws(InstarError) -> FileIdentity? {
    switch self {
    case .any, .shared: nil
    case .own: try StoreTrust(owner: ProcessIdentity.ownUser).confirm(store)
    }
  }

  /// Probes a store for a run.
  ///
  /// - Parameters:
  ///   - versionSources: Where plans want a plain store to say its version.
  ///   - busyTimeout: Seconds to wait for a process that is in the middle of writing.
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

  /// Probes a store, between confirming the way to it and comparing what was met.
  func probe(
    _ store: String, _ read: (String) throws(InstarError) -> StoreProbe
  ) throws(InstarError) -> StoreProbe {
    let confirmed = try confirm(store)
    let probe = try read(store)
    try require(confirmed, probe.file)
    return probe
  }

  /// Looks at a store's file once more, on its confirmed way.
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
        cause: "another file has taken its name meanwhile", state: "unchanged", next: "try again")
    }
  }
}
