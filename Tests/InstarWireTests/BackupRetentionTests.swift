import InstarWire
import Testing

@Suite("Which backups are kept")
struct BackupRetentionTests {
  /// A backup of a store, made some hours ago.
  private func backup(_ store: String, _ hours: Int, bytes: Int64 = 1 << 20)
    -> BackupRetention.Backup
  {
    BackupRetention.Backup(
      run: "\(store)\(hours)", store: store, madeAt: Double(-hours * 3600), bytes: bytes)
  }

  @Test("the newest ones of each store, up to their number")
  func count() {
    let backups = [1, 2, 3].map { backup("a", $0) } + [1, 2].map { backup("b", $0) }
    #expect(Set(BackupRetention(count: 2).surplus(of: backups, now: 0).keys) == ["a3"])
    #expect(Set(BackupRetention(count: 1).surplus(of: backups, now: 0).keys) == ["a2", "a3", "b2"])
    #expect(BackupRetention().surplus(of: backups, now: 0).isEmpty)
  }

  @Test("those that are young enough, and the newest one of any age")
  func age() {
    let backups = [10, 20, 30].map { backup("a", $0) } + [backup("b", 100)]
    let surplus = BackupRetention(age: .seconds(15 * 3600)).surplus(of: backups, now: 0)
    #expect(Set(surplus.keys) == ["a20", "a30"])
    #expect(surplus["a20"] == "older than 15 h")
  }

  @Test("the newest ones that fit together, and the newest one of any size")
  func size() {
    let backups = [1, 2, 3].map { backup("a", $0) } + [backup("b", 1, bytes: 1 << 30)]
    #expect(
      Set(BackupRetention(bytes: 2 << 20).surplus(of: backups, now: 0).keys) == ["a3"])
  }

  @Test("of all stores of a watch the oldest go first, but no store loses its newest one")
  func totalSize() {
    let backups = [1, 2, 5].map { backup("a", $0) } + [backup("b", 9), backup("b", 4)]
    #expect(
      Set(BackupRetention(totalBytes: 3 << 20).surplus(of: backups, now: 0).keys) == ["b9", "a5"])
    #expect(
      Set(BackupRetention(totalBytes: 0).surplus(of: backups, now: 0).keys) == ["b9", "a5", "a2"])
  }
}
