internal import InstarSchema

/// How copies of backups are compressed.
public enum BackupCompression: String, Sendable, Codable, Hashable, CaseIterable {
  /// A copy is the backup, byte for byte.
  case none
  /// A copy is what the command `zstd` makes of the backup.
  case zstd
}

/// A folder for copies of backups, and how they are compressed.
public struct BackupFolder: Sendable, Codable, Hashable {
  /// The path of an existing folder, absolute.
  public var path: String
  /// How the copies are compressed.
  public var compression: BackupCompression

  package init(path: String, compression: BackupCompression = .none) {
    self.path = path
    self.compression = compression
  }

  /// Returns the path of the copy of a backup: the same name in this folder, with `.zst` if it is compressed.
  public func copy(ofBackup backup: String) -> String {
    let name = backup.lastName
    return "\(path)/\(name)" + (compression == .zstd ? ".zst" : "")
  }
}

/// A copy of a backup, as it was read back after it was written.
public struct BackupCopy: Sendable, Codable, Hashable {
  /// The path of the copy.
  public var path: String
  /// The size of its file, in bytes.
  public var bytes: Int64
  /// The hash of the content that was read back and decompressed: that of the backup's manifest.
  public var contentHash: String

  package init(path: String, bytes: Int64, contentHash: String) {
    self.path = path
    self.bytes = bytes
    self.contentHash = contentHash
  }
}
