import InstarSchema

/// Which backups are kept: at most so many, so old and so large. The newest backup of each store is always kept.
public struct BackupRetention: Sendable, Hashable {
  /// The most backups of one store.
  public var count: Int
  /// How long a backup is kept; `nil` without a limit.
  public var age: Duration?
  /// The most bytes of the backups of one store; `nil` without a limit.
  public var bytes: Int64?
  /// The most bytes of the backups of all stores together, such as those of a watch; `nil` without a limit. Where the
  /// stores have several owners, nobody loses a backup as long as they have no more than an equal share.
  public var totalBytes: Int64?

  /// By default ten backups of each store, of any age and size.
  public init(
    count: Int = 10, age: Duration? = nil, bytes: Int64? = nil, totalBytes: Int64? = nil
  ) {
    self.count = count
    self.age = age
    self.bytes = bytes
    self.totalBytes = totalBytes
  }

  /// A backup whose file exists.
  public struct Backup: Sendable, Hashable {
    /// The run that made it.
    public var run: String
    /// The path of the store.
    public var store: String
    /// The user whose store it is; `nil` where that is not known.
    public var owner: UInt32?
    /// When it was made, in seconds since 1970.
    public var madeAt: Double
    /// The size of the file.
    public var bytes: Int64

    /// Which backup it is.
    public var identity: BackupReference.Identity { .init(run: run, store: store) }

    package init(run: String, store: String, owner: UInt32?, madeAt: Double, bytes: Int64) {
      self.run = run
      self.store = store
      self.owner = owner
      self.madeAt = madeAt
      self.bytes = bytes
    }
  }

  /// Returns the backups that are not to be kept, with the reason.
  ///
  /// - Parameters:
  ///   - backups: The backups of all stores that share `totalBytes`, oldest first. Their order says which is newer, not
  ///     `madeAt`: a clock may have been set back.
  ///   - now: In seconds since 1970.
  public func surplus(of backups: [Backup], now: Double) -> [BackupReference.Identity: String] {
    var surplus: [BackupReference.Identity: String] = [:]
    for ofStore in Dictionary(grouping: backups, by: \.store).values {
      addSurplus(ofStore.reversed(), now, &surplus)
    }
    addTotalSurplus(backups, &surplus)
    return surplus
  }

  /// - Parameter backups: Those of one store, newest first.
  private func addSurplus(
    _ backups: [Backup], _ now: Double, _ surplus: inout [BackupReference.Identity: String]
  ) {
    var kept: Int64 = backups.first?.bytes ?? 0
    for (index, backup) in backups.enumerated().dropFirst() {
      kept = kept.saturatingAdd(backup.bytes)
      if index >= count {
        surplus[backup.identity] =
          "more than \(count.counted("backup")) of the store"
      } else if let age, now - backup.madeAt > Double(age.components.seconds) {
        surplus[backup.identity] = "older than \(DurationText.format(age))"
      } else if let bytes, kept > bytes {
        surplus[backup.identity] = "more than \(Quantity.bytes(bytes)) of backups of the store"
      }
    }
  }

  /// Takes away the oldest backups of each owner above their share, but no store's newest one.
  ///
  /// Stores whose owners are not known have together what one more owner could have. They do not reduce the shares of
  /// owners: anybody may have chosen their paths.
  private func addTotalSurplus(
    _ backups: [Backup], _ surplus: inout [BackupReference.Identity: String]
  ) {
    guard let totalBytes else { return }
    let newest = Dictionary(backups.map { ($0.store, $0.run) }, uniquingKeysWith: { $1 })
    let kept = Dictionary(grouping: backups.filter { surplus[$0.identity] == nil }, by: \.owner)
    let totals = kept.mapValues { $0.map(\.bytes).saturatingSum }
    let ofOwners = totals.compactMap { owner, total in owner == nil ? nil : total }
    let shareOfOwner = Self.share(of: totalBytes, among: ofOwners)
    for (owner, backups) in kept {
      var total = totals[owner] ?? 0
      let (share, whose) =
        owner == nil
        ? (
          Self.share(of: totalBytes, among: ofOwners + [total]), "stores whose owners are not known"
        )
        : (shareOfOwner, kept.count == 1 ? "all stores" : "all stores of their owner")
      for backup in backups where newest[backup.store] != backup.run && total > share {
        surplus[backup.identity] = "more than \(Quantity.bytes(share)) of backups of \(whose)"
        total -= backup.bytes
      }
    }
  }

  /// Returns how much each owner may have: an equal share, with what other owners leave of theirs. The owner of a store
  /// chooses the size of its backups, and would else have those of others removed.
  private static func share(of bytes: Int64, among totals: some Sequence<Int64>) -> Int64 {
    var left = bytes
    var share = bytes
    let totals = totals.sorted()
    for (index, total) in totals.enumerated() {
      share = left / Int64(totals.count - index)
      guard total <= share else { return share }
      left -= total
    }
    return .max
  }
}
