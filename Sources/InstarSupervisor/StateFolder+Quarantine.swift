import Foundation
import InstarLinux
public import InstarSchema
import InstarWire

/// Quarantined stores: one file each, so that the failures of a fleet do not write each other again.
extension StateFolder {
  private var quarantineFolder: String { path + "/quarantine" }

  private func quarantineFile(of store: String) -> String {
    "\(quarantineFolder)/\(HoldName.digest(store)).json"
  }

  /// Returns the quarantined stores that an earlier daemon recorded, by path.
  ///
  /// - Returns: `unreadable` has one error for each record that cannot be read; its store is only retried.
  /// - Throws: `stateFolderFailed` where the folder cannot be read.
  public func quarantineRecords() throws(InstarError) -> (
    records: [QuarantineRecord], unreadable: [InstarError]
  ) {
    var records: [QuarantineRecord] = []
    var unreadable: [InstarError] = []
    for name in try names(in: quarantineFolder) where name.hasSuffix(".json") {
      let file = "\(quarantineFolder)/\(name)"
      do throws(InstarError) {
        records.append(try WireCoder.message(QuarantineRecord.self, from: try read(file)))
      } catch {
        unreadable.append(Self.unreadableQuarantine(file, error))
      }
    }
    return (records.sorted { $0.store < $1.store }, unreadable)
  }

  private static func unreadableQuarantine(_ file: String, _ error: InstarError) -> InstarError {
    InstarError(
      .stateFolderFailed, "cannot read the quarantine '\(file)'",
      cause: error.code == .protocolViolation
        ? "the file is damaged, or of another release" : error.cause,
      state: "instard retries the store of this record",
      next: "run: rm \(CommandText.quoted(file))")
  }

  /// Records a quarantined store. It is on disk when this returns.
  public func setQuarantine(_ record: QuarantineRecord) throws(InstarError) {
    try DurableFile.write(
      try WireCoder.line(record), to: quarantineFile(of: record.store), mode: 0o600, owner: owner)
  }

  /// Removes the records of stores. That is on disk when this returns.
  public func endQuarantine(of stores: [String]) throws(InstarError) {
    guard !stores.isEmpty else { return }
    // A new plugin ends all of them at once, so they share one sync.
    for store in stores {
      try DurableFile.remove(quarantineFile(of: store), isDurable: false, owner: owner)
    }
    try DurableFile.synchronizeFolder(quarantineFolder)
  }
}
