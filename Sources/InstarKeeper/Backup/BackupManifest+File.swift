internal import Foundation
internal import InstarWire

extension BackupManifest {
  /// Writes the manifest beside its backup, so that the backup is found and verified without the ledger.
  ///
  /// After the store was written: a manifest without a run in the ledger means that the ledger was lost. The file is
  /// not synchronized, and a failure is ignored: the ledger has the manifest too.
  func write(besideBackup backup: String) {
    guard let line = try? WireCoder.line(self) else { return }
    let path = Self.path(ofBackup: backup)
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    // A part of a manifest is not read as one.
    _ = line.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
  }
}
