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

  @Test("the newest ones of each store, up to their number")
  func count() {
    let backups = [3, 2, 1].map { backup("a", $0) } + [2, 1].map { backup("b", $0) }
    #expect(Set(BackupRetention(count: 2).surplus(of: backups, now: 0).keys) == ["a3"])
    #expect(Set(BackupRetention(count: 1).surplus(of: backups, now: 0).keys) == ["a2", "a3", "b2"])
    #expect(BackupRetention().surplus(of: backups, now: 0).isEmpty)
  }

  @Test("the newest one stays also where the clock was set back before it was made")
  func clock() {
    let backups = [backup("a", 1), backup("a", 2), backup("a", 500)]
    for retention in [
      BackupRetention(count: 1), BackupRetention(age: .seconds(3600)), BackupRetention(bytes: 0),
      BackupRetention(totalBytes: 0),
    ] {
      #expect(retention.surplus(of: backups, now: 0)["a500"] == nil)
    }
    #expect(Set(BackupRetention(count: 1).surplus(of: backups, now: 0).keys) == ["a1", "a2"])
  }

  @Test("those that are young enough, and the newest one of any age")
  func age() {
    let backups = [30, 20, 10].map { backup("a", $0) } + [backup("b", 100)]
    let surplus = BackupRetention(age: .seconds(15 * 3600)).surplus(of: backups, now: 0)
    #expect(Set(surplus.keys) == ["a20", "a30"])
    #expect(surplus["a20"] == "older than 15 h")
  }

  @Test("the newest ones that fit together, and the newest one of any size")
  func size() {
    let backups = [3, 2, 1].map { backup("a", $0) } + [backup("b", 1, bytes: 1 << 30)]
    #expect(
      Set(BackupRetention(bytes: 2 << 20).surplus(of: backups, now: 0).keys) == ["a3"])
  }

  @Test("of all stores of a watch the oldest go first, but no store loses its newest one")
  func totalSize() {
    let backups = [
      backup("b", 9), backup("a", 5), backup("b", 4), backup("a", 2), backup("a", 1),
    ]
    #expect(
      Set(BackupRetention(totalBytes: 3 << 20).surplus(of: backups, now: 0).keys) == ["b9", "a5"])
    #expect(
      Set(BackupRetention(totalBytes: 0).surplus(of: backups, now: 0).keys) == ["b9", "a5", "a2"])
  }

  @Test(
    "an owner whose backups are large, or claim to be, takes no other owner's share of the size")
  func owners() {
    let small = [3, 2, 1].map { backup("a", $0) }
    for bytes in [Int64(100) << 20, 1 << 60] {
      let large = [3, 2, 1].map { backup("b", $0, bytes: bytes, owner: 1001) }
      let surplus = BackupRetention(totalBytes: 10 << 20).surplus(of: large + small, now: 0)
      #expect(Set(surplus.keys) == ["b3", "b2"])
      #expect(surplus["b3"] == "more than 7 MiB of backups of all stores of their owner")
    }
    let other = [9, 8].map { backup("c", $0, owner: 1001) }
    #expect(
      Set(BackupRetention(totalBytes: 4 << 20).surplus(of: other + small, now: 0).keys) == ["a3"])
    #expect(BackupRetention(totalBytes: 5 << 20).surplus(of: other + small, now: 0).isEmpty)
  }

  @Test("stores whose owners are not known have one share, and take none of others")
  func unknownOwners() {
    let known = [3, 2, 1].map { backup("a", $0) }
    let unknown = [("b", 6), ("b", 5), ("b", 4), ("c", 3), ("c", 2), ("c", 1)].map {
      backup($0, $1, bytes: 2 << 20, owner: nil)
    }
    let surplus = BackupRetention(totalBytes: 8 << 20).surplus(of: unknown + known, now: 0)
    #expect(Set(surplus.keys) == ["b6", "b5", "c3", "c2"])
    #expect(surplus["b6"] == "more than 5 MiB of backups of stores whose owners are not known")
    #expect(BackupRetention(totalBytes: 15 << 20).surplus(of: unknown + known, now: 0).isEmpty)
  }

  @Test("sizes that are too large to be added are as good as the largest one")
  func sum() {
    let backups = [3, 2, 1].map { backup("a", $0, bytes: .max) }
    for retention in [BackupRetention(bytes: 1), BackupRetention(totalBytes: 1)] {
      #expect(!retention.surplus(of: backups, now: 0).isEmpty)
    }
  }
}
