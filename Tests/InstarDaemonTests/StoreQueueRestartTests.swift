import InstarConfiguration
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire
import Testing

@testable import InstarDaemon

@Suite("StoreQueue: quarantine over a restart")
struct StoreQueueRestartTests {
  private static let plugin = RolloutRecord.PluginFile(path: "/p/a.so", bytes: 1, modified: 1)

  private func bench() -> Bench {
    var configuration = Configuration()
    configuration.watches = [Configuration.Watch(folder: "/srv")]
    return Bench(configuration)
  }

  /// What a daemon records of a store whose only run fails.
  private func record() throws -> QuarantineRecord {
    var bench = bench()
    bench.handle(.pluginsKnown([Self.plugin]))
    bench.handle(.released)
    bench.beginRun()
    let actions = bench.endRun(.failed, failure("a note has no title", .stageFailed))
    return try #require(actions.quarantines.first)
  }

  /// A daemon that starts with the record, and finds the store.
  private func restarted(
    _ record: QuarantineRecord, with plugins: [RolloutRecord.PluginFile] = [plugin],
    version: WatchedVersion = file(1)
  ) -> (bench: Bench, actions: [StoreQueue.Action]) {
    var bench = bench()
    bench.queue.restore([record])
    var actions = bench.handle(.versionRead(Bench.store, version))
    for event: StoreQueue.Event in [.pluginsKnown(plugins), .verdictsInDoubt, .released] {
      actions += bench.handle(event)
    }
    return (bench, actions)
  }

  @Test("a quarantined store stays so, with its error and its state, and is not probed")
  func stays() throws {
    let (bench, actions) = restarted(try record())
    #expect(actions.isEmpty)
    #expect(bench.state == .resting(.quarantined) && bench.queue.quarantinedCount == 1)
    let status = bench.status()
    #expect(status?.error?.cause == "a note has no title" && status?.state == .behind)
  }

  @Test("a store that is found after the plugins stays so too")
  func foundLate() throws {
    var bench = bench()
    bench.queue.restore([try record()])
    for event: StoreQueue.Event in [.pluginsKnown([Self.plugin]), .verdictsInDoubt, .released] {
      bench.handle(event)
    }
    #expect(bench.find().isEmpty)
    #expect(bench.state == .resting(.quarantined))
  }

  @Test("another file, other plugins and none of them end the quarantine")
  func lifted() throws {
    let record = try record()
    let changed = RolloutRecord.PluginFile(path: "/p/a.so", bytes: 1, modified: 2)
    let further = RolloutRecord.PluginFile(path: "/p/b.so", bytes: 1, modified: 1)
    for actions in [
      restarted(record, version: file(2)).actions, restarted(record, with: [changed]).actions,
      restarted(record, with: [Self.plugin, further]).actions, restarted(record, with: []).actions,
    ] {
      #expect(actions.probes == [[Bench.store]] && actions.ended == [Bench.store])
    }
  }

  @Test("after the start, a retry, a reload and a change of the file end the quarantine")
  func liftedLater() throws {
    let record = try record()
    for event: StoreQueue.Event in [
      .verdictsInDoubt, .retryWanted([Bench.store], byOperator: true), .forgotten(Bench.store),
    ] {
      var (bench, _) = restarted(record)
      #expect(bench.handle(event).ended == [Bench.store])
    }
    var (bench, _) = restarted(record)
    #expect(bench.handle(.touched(Bench.store)).isEmpty)
    bench.wait(.seconds(1))
    #expect(bench.find(file(2)).ended == [Bench.store])
  }

  @Test("a store that is missing stays recorded, because its file system may come back")
  func missing() throws {
    var (bench, _) = restarted(try record())
    #expect(bench.handle(.missing(Bench.store)).isEmpty)
    #expect(bench.find().isEmpty)
    bench.handle(.missing(Bench.store))
    #expect(bench.handle(.verdictsInDoubt).ended == [Bench.store])
  }

  @Test("a damaged store that is missing stays quarantined also with other plugins")
  func missingAndDamaged() {
    var bench = bench()
    bench.handle(.pluginsKnown([Self.plugin]))
    bench.handle(.released)
    bench.beginRun()
    let damage = failure("20 entries for 19 rows", .corruptStore).provingDamage()
    bench.endRun(.refused, damage)
    bench.handle(.missing(Bench.store))
    #expect(bench.handle(.verdictsInDoubt).isEmpty)
    #expect(bench.find().isEmpty)
    let status = bench.status()
    #expect(status?.activity == .quarantined && status?.state == .corrupt)
  }

  @Test("a damaged store is held from the moment when it is found, and a retry keeps its verdict")
  func heldAndDamaged() throws {
    var old = bench()
    _ = old.handle(.pluginsKnown([Self.plugin]))
    _ = old.handle(.released)
    _ = old.beginRun()
    let damage = failure("20 entries for 19 rows", .corruptStore).provingDamage()
    let record = try #require(old.endRun(.refused, damage).quarantines.first)

    var bench = bench()
    bench.queue.restore([record])
    bench.handle(.holdsChanged(of: nil, held: [Bench.store]))
    for event: StoreQueue.Event in [
      .pluginsKnown([Self.plugin]), .verdictsInDoubt, .released,
      .versionRead(Bench.store, file(1)), .retryWanted([Bench.store], byOperator: true),
    ] {
      #expect(bench.handle(event).isEmpty)
    }
    let held = bench.status()
    #expect(held?.activity == .held && held?.state == .corrupt)
    // It is released while its file system is away.
    bench.handle(.missing(Bench.store))
    bench.handle(.holdsChanged(of: [Bench.store], held: []))
    #expect(bench.find().isEmpty)
    let released = bench.status()
    #expect(released?.activity == .quarantined && released?.state == .corrupt)
  }

  @Test("a reload ends the quarantine also before the plugins are known")
  func reloaded() throws {
    let record = try record()
    let settings = bench().queue.settings
    var found = bench()
    found.queue.restore([record])
    _ = found.find()
    var actions: [StoreQueue.Action] = []
    for event: StoreQueue.Event in [
      .settingsChanged(settings), .verdictsInDoubt, .pluginsKnown([Self.plugin]), .released,
    ] {
      actions += found.handle(event)
    }
    #expect(actions.ended == [Bench.store] && actions.probes == [[Bench.store]])

    var missing = bench()
    missing.queue.restore([record])
    _ = missing.handle(.settingsChanged(settings))
    #expect(missing.handle(.verdictsInDoubt).ended == [Bench.store])
  }

  @Test("a held store is not recorded: its hold may end before the next start")
  func held() {
    var bench = bench()
    bench.handle(.released)
    bench.beginRun()
    let actions = bench.endRun(.refused, failure("held by anna", .heldStore))
    #expect(actions.quarantines.isEmpty)
  }

  @Test("a store that fails while the daemon stops is not recorded: the next start retries it")
  func stopping() {
    var bench = bench()
    bench.handle(.released)
    bench.beginRun()
    bench.handle(.stopping)
    #expect(bench.endRun(.failed, failure("14 rows", .stageFailed)).quarantines.isEmpty)
  }
}
