internal import InstarSchema

/// A backup: where it is, and what it must be.
public struct BackupReference: Sendable, Codable, Hashable {
  /// The run that made the backup.
  public var run: String
  /// The path of the store, absolute.
  public var store: String
  /// The path of the backup.
  public var path: String
  /// Left out for a backup of a release that wrote no manifests.
  public var manifest: BackupManifest?
  /// The path of a copy in another folder; left out without one.
  public var copy: String?

  /// Which backup it is. Its run alone does not say so: a tree of stores that was copied with its folders `.instar` has
  /// backups of the same runs.
  public struct Identity: Sendable, Hashable {
    /// The run that made the backup.
    public var run: String
    /// The path of the store, absolute.
    public var store: String

    package init(run: String, store: String) {
      self.run = run
      self.store = store
    }
  }

  /// Which backup it is.
  public var identity: Identity { Identity(run: run, store: store) }

  /// The backup itself, as if it had no copy.
  package var withoutCopy: BackupReference {
    var reference = self
    reference.copy = nil
    return reference
  }

  /// The copy, as a backup of its own; `nil` without one.
  package var ofCopy: BackupReference? {
    guard let copy else { return nil }
    var reference = withoutCopy
    reference.path = copy
    return reference
  }

  /// Whether a path has the name that Instar gives the copy of the backup.
  package func hasName(ofCopy path: String) -> Bool {
    BackupCompression.allCases.contains { compression in
      path.hasSuffix(BackupFolder(path: "", compression: compression).copy(ofBackup: name))
    }
  }

  /// The name that Instar gives the backup.
  package var name: String {
    "\(store.lastName).\(run)\(BackupManifest.suffix)"
  }

  package init(
    run: String, store: String, path: String, manifest: BackupManifest?, copy: String? = nil
  ) {
    self.copy = copy
    self.run = run
    self.store = store
    self.path = path
    self.manifest = manifest
  }
}
