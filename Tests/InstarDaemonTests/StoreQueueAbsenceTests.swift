import InstarConfiguration
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire
import Testing

@testable import InstarDaemon

@Suite("StoreQueue: stores that vanish or move")
struct StoreQueueAbsenceTests {
  /// The store is quarantined after a failure that another attempt would repeat.
  private func quarantined() -> Bench {
    var bench = bench()
    bench.beginRun()
    bench.endRun(.failed, failure("a note has no title", .stageFailed))
    return bench
  }

  private func bench() -> Bench {
    var configuration = Configuration()
    configuration.watches = [
      Configuration.Watch(folder: "/srv"), Configuration.Watch(folder: "/other"),
    ]
    var bench = Bench(configuration)
    bench.handle(.released)
    return bench
  }

  @Test("a quarantined store that comes back as it was stays quarantined, and is not probed")
  func comesBack() {
    var bench = quarantined()
    #expect(bench.state == .resting(.quarantined))
    #expect(bench.handle(.missing(Bench.store)).isEmpty)
    #expect(bench.state == nil && bench.queue.quarantinedCount == 0)
    #expect(bench.find().isEmpty)
    #expect(bench.state == .resting(.quarantined) && bench.queue.quarantinedCount == 1)
  }

  @Test("a store that comes back with another file, or after a plugin changed, is probed")
  func comesBackOtherwise() {
    for isOtherPlugin in [true, false] {
      var bench = quarantined()
      bench.handle(.missing(Bench.store))
      if isOtherPlugin { _ = bench.handle(.verdictsInDoubt) }
      let version = file(isOtherPlugin ? 1 : 2)
      #expect(bench.handle(.versionRead(Bench.store, version)).probes == [[Bench.store]])
    }
  }

  @Test("a quarantined store that was held while it was missing is probed")
  func comesBackHeld() {
    var bench = quarantined()
    bench.handle(.missing(Bench.store))
    bench.handle(.holdsChanged(of: [Bench.store], held: [Bench.store]))
    #expect(bench.find().probes == [[Bench.store]])
  }

  @Test("a quarantined store in a folder that got another name stays quarantined")
  func moves() {
    var bench = quarantined()
    let actions = bench.handle(.folderMoved(from: "/srv", to: "/other"))
    #expect(actions.quarantines.map(\.store) == ["/other/a.store"])
    #expect(actions.ended == [Bench.store] && actions.count == 2)
    #expect(bench.state == nil)
    #expect(bench.queue.state(of: "/other/a.store") == .resting(.quarantined))
    #expect(bench.find(store: "/other/a.store").isEmpty)
    #expect(bench.queue.quarantinedCount == 1 && bench.queue.storeCount == 1)
  }

  @Test("a store in a folder that no watch has under its new name is forgotten")
  func movesAway() {
    var bench = quarantined()
    bench.handle(.folderMoved(from: "/srv", to: "/elsewhere"))
    #expect(bench.queue.storeCount == 0 && bench.queue.quarantinedCount == 0)
  }

  @Test(
    "a run goes on in a folder that got another name, and the store has no second one meanwhile")
  func movesDuringRun() {
    var bench = bench()
    bench.beginRun()
    bench.handle(.folderMoved(from: "/srv", to: "/other"))
    #expect(bench.state == .running(inDoubt: false))
    #expect(bench.find(store: "/other/a.store").probes == [["/other/a.store"]])
    bench.endRun(.migrated, after: file(2))
    bench.wait(.seconds(1))
    bench.handle(.missing(Bench.store))
    #expect(bench.queue.stores == ["/other/a.store"])
  }
}
