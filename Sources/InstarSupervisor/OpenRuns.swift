import InstarLinux
import InstarSchema
import InstarWire

/// Finds out whose runs open runs are, in one call. Asks about the path of each store once at most.
struct OpenRuns {
  let access: KeeperAccess
  let reader: FileReader
  /// `nil` for a store without an answer.
  private var known: [String: StorePath?] = [:]

  init(access: KeeperAccess, reader: FileReader) {
    self.access = access
    self.reader = reader
  }

  /// Whether a run is one of a store, whose path may be spelled differently.
  ///
  /// A folder of the path may have become a symbolic link since the run began. So a run also belongs to the store that
  /// its path resolves to now. A path that does not resolve in time counts as another store.
  ///
  /// - Parameter path: The store's path in the ledger.
  mutating func isOf(_ path: StorePath, _ record: PhaseRecord) -> Bool {
    guard mayBeOf(path, record) else { return false }
    if record.keptStore == path.text || record.store == path.text { return true }
    return self.path(of: record.store) == path
  }

  /// Whether a run may be one of a store, as far as its record says. Asks nothing.
  func mayBeOf(_ path: StorePath, _ record: PhaseRecord) -> Bool {
    record.keptStore == path.text
      || record.store.lastName == path.text.lastName
  }

  /// The path under which the ledger is to have a run: the one in its record, else the path of its store now.
  ///
  /// - Returns: `nil` without an answer.
  mutating func ledgerPath(of record: PhaseRecord) -> StorePath? {
    record.keptStore.map(StorePath.init(inLedger:)) ?? path(of: record.store)
  }

  private mutating func path(of store: String) -> StorePath? {
    if let path = known[store] { return path }
    let path = reader.answers(about: [store]) { [access] in access.ledgerPath(of: $0) }.first
    known.updateValue(path, forKey: store)
    return path
  }
}
