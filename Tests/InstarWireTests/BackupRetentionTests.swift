import InstarWire
import Testing

@Suite("Which backups are kept")
struct BackupRetentionTests {
  /// A backup of a store, made some hours ago.
  private func backup(_ store: String, _ hours: Int, bytes: Int64 = 1 << 20, owner: UInt32? = 1000)
    -> BackupRetention.Backup
  {
    BackupRetention.Backup(
      run: "\(store)\(hours)", store: store, owner: owner, madeAt: Double(-hours * 3600),
      bytes: bytes)
  }

  /// The backups that a retention does not keep, by run, with the reason.
  private func surplus(_ retention: BackupRetention, _ backups: [BackupRetention.Backup])
    -> [String: String]
  {
    let surplus = retention.surplus(of: backups, now: 0)
    return Dictionary(uniqueKeysWithValues: surplus.map { ($0.key.run, $0.value) })
  }

  @Test("each of several stores that were copied with their backups loses its own ones")
  func sameRuns() {
    func backup(_ store: String, _ number: Int, owner: UInt32, bytes: Int64)
      -> BackupRetention.Backup
    {
      .init(run: "R\(number)", store: store, owner: owner, madeAt: Double(number), bytes: bytes)
    }
    let original = (1...3).map { backup("/srv/a", $0, owner: 1000, bytes: 1 << 20) }
    let copied = (1...2).map { backup("/home/a", $0, owner: 1001, bytes: 1 << 20) }
    func surplus(_ retention: BackupRetention) -> Set<BackupReference.Identity> {
      Set(retention.surplus(of: original + copied, now: 9).keys)
    }
    #expect(surplus(BackupRetention(count: 2)) == [original[0].identity])
    #expect(
      surplus(BackupRetention(age: .seconds(7))) == [original[0].identity, copied[0].identity])
    #expect(surplus(BackupRetention(totalBytes: 4 << 20)) == [original[0].identity])
  }

  @Test("the newest backups of each store are kept, up to their number")
  func count() {
    let backups = [3, 2, 1].map { backup("a", $0) } + [2, 1].map { backup("b", $0) }
    #expect(Set(surplus(BackupRetention(count: 2), backups).keys) == ["a3"])
    #expect(Set(surplus(BackupRetention(count: 1), backups).keys) == ["a2", "a3", "b2"])
    #expect(surplus(BackupRetention(), backups).isEmpty)
  }

  @Test("the newest backup stays also where the clock was set back before it was made")
  func clock() {
    let backups = [backup("a", 1), backup("a", 2), backup("a", 500)]
    for retention in [
      BackupRetention(count: 1), BackupRetention(age: .seconds(3600)), BackupRetention(bytes: 0),
      BackupRetention(totalBytes: 0),
    ] {
      #expect(surplus(retention, backups)["a500"] == nil)
    }
    #expect(Set(surplus(BackupRetention(count: 1), backups).keys) == ["a1", "a2"])
  }

  @Test("backups that are young enough are kept, and the newest one of any age")
  func age() {
    let backups = [30, 20, 10].map { backup("a", $0) } + [backup("b", 100)]
    let removed = surplus(BackupRetention(age: .seconds(15 * 3600)), backups)
    #expect(Set(removed.keys) == ["a20", "a30"])
    #expect(removed["a20"] == "older than 15 h")
  }

  @Test("the newest backups that fit together are kept, and the newest one of any size")
  func size() {
    let backups = [3, 2, 1].map { backup("a", $0) } + [backup("b", 1, bytes: 1 << 30)]
    #expect(
      Set(surplus(BackupRetention(bytes: 2 << 20), backups).keys) == ["a3"])
  }

  @Test("the oldest backups of all stores of a watch go first, but no store loses its newest one")
  func totalSize() {
    let backups = [
      backup("b", 9), backup("a", 5), backup("b", 4), backup("a", 2), backup("a", 1),
    ]
    #expect(
      Set(surplus(BackupRetention(totalBytes: 3 << 20), backups).keys) == ["b9", "a5"])
    #expect(
      Set(surplus(BackupRetention(totalBytes: 0), backups).keys) == ["b9", "a5", "a2"])
  }

  @Test(
    "an owner whose backups are large, or claim to be, takes no other owner's share of the size")
  func owners() {
    let small = [3, 2, 1].map { backup("a", $0) }
    for bytes in [Int64(100) << 20, 1 << 60] {
      let large = [3, 2, 1].map { backup("b", $0, bytes: bytes, owner: 1001) }
      let removed = surplus(BackupRetention(totalBytes: 10 << 20), large + small)
      #expect(Set(removed.keys) == ["b3", "b2"])
      #expect(removed["b3"] == "more than 7 MiB of backups of all stores of their owner")
    }
    let other = [9, 8].map { backup("c", $0, owner: 1001) }
    #expect(
      Set(surplus(BackupRetention(totalBytes: 4 << 20), other + small).keys) == ["a3"])
    #expect(surplus(BackupRetention(totalBytes: 5 << 20), other + small).isEmpty)
  }

  @Test("stores whose owners are not known have one share, and take none of others")
  func unknownOwners() {
    let known = [3, 2, 1].map { backup("a", $0) }
    let unknown = [("b", 6), ("b", 5), ("b", 4), ("c", 3), ("c", 2), ("c", 1)].map {
      backup($0, $1, bytes: 2 << 20, owner: nil)
    }
    let removed = surplus(BackupRetention(totalBytes: 8 << 20), unknown + known)
    #expect(Set(removed.keys) == ["b6", "b5", "c3", "c2"])
    #expect(removed["b6"] == "more than 5 MiB of backups of stores whose owners are not known")
    #expect(surplus(BackupRetention(totalBytes: 15 << 20), unknown + known).isEmpty)
  }

  @Test("sizes that are too large to be added are as good as the largest one")
  func sum() {
    let backups = [3, 2, 1].map { backup("a", $0, bytes: .max) }
    for retention in [BackupRetention(bytes: 1), BackupRetention(totalBytes: 1)] {
      #expect(!surplus(retention, backups).isEmpty)
    }
  }
}
