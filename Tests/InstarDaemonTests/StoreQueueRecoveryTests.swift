import InstarConfiguration
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire
import Testing

@testable import InstarDaemon

@Suite("StoreQueue: recoveries and owners")
struct StoreQueueRecoveryTests {
  @Test("a store whose run was cut off is recovered at once, and only then probed")
  func recovery() {
    var bench = Bench(released: false)
    let store = Bench.store
    #expect(bench.handle(.interrupted(store, owner: 1)) == [.recover(store)])
    bench.handle(.released)
    // Another store does not wait for it.
    #expect(bench.find(store: "/srv/b.store").probes == [["/srv/b.store"]])
    #expect(bench.find(store: store).isEmpty)
    #expect(bench.handle(.touched(store)).isEmpty)
    #expect(bench.state == .recovering)
    #expect(bench.handle(.recovered(store, nil)).isEmpty)
    #expect(bench.wait(.seconds(1)) == [.readVersion(store)])
    bench.answer(.current, store: "/srv/b.store")
    #expect(bench.find(store: store).probes == [[store]])
  }

  @Test(
    "a run that ended without its recovery is recovered later, but not while its store is at work")
  func laterRecovery() {
    var bench = Bench()
    let store = Bench.store
    bench.beginRun()
    #expect(bench.handle(.interrupted(store, owner: 1)).isEmpty)
    #expect(bench.state == .running(inDoubt: false))
    bench.endRun(.failed, failure("the disk is full", .noSpace))
    #expect(bench.handle(.interrupted(store, owner: 1)) == [.recover(store)])
    #expect(bench.state == .recovering)
    bench.handle(.recovered(store, failure("the disk is full", .noSpace)))
    // Its own pause counts, whoever finds the run again.
    #expect(bench.handle(.interrupted(store, owner: 1)).isEmpty)
    #expect(bench.wait(.seconds(10)) == [.recover(store)])
  }

  @Test("a recovery that fails is repeated after a pause, also when the store is gone")
  func failedRecovery() {
    var bench = Bench()
    let store = Bench.store
    bench.handle(.interrupted(store, owner: 1))
    let error = failure("the disk is gone", .busyStore)
    #expect(
      bench.handle(.recovered(store, error))
        == [.reportRecoveryFailure(error, .retry(after: .seconds(10)))])
    #expect(bench.handle(.missing(store)).isEmpty)
    #expect(bench.wait(.seconds(10)) == [.recover(store)])
    bench.handle(.recovered(store, error))
    bench.handle(.touched(store))
    #expect(bench.wait(.seconds(1)) == [.readVersion(store)])
    #expect(bench.handle(.missing(store)) == [.recover(store)])
    bench.handle(.recovered(store, nil))
    #expect(bench.wait(.seconds(1)) == [.readVersion(store)])
    bench.handle(.missing(store))
    #expect(bench.state == nil)
  }

  @Test("a recovery that is canceled because the daemon stops is not told as a failure")
  func recoveryAtStop() {
    for (code, isTold) in [(InstarError.Code.interrupted, false), (.corruptStore, true)] {
      var bench = Bench()
      let store = Bench.store
      bench.handle(.interrupted(store, owner: 1))
      bench.handle(.stopping)
      let error = failure("the daemon stops", code)
      let actions = bench.handle(.recovered(store, error))
      #expect(actions.contains(.reportRecoveryFailure(error, .afterRestart)) == isTold)
    }
  }

  @Test("each owner has the stores whose files are theirs now")
  func storesOfOwners() {
    var bench = Bench(parallelRuns: 2)
    for number in 0..<20 {
      bench.handle(.versionRead("/srv/\(number)", file(1, owner: UInt32(number % 2))))
    }
    bench.find(file(2, owner: 1), store: "/srv/0")
    bench.handle(.interrupted("/srv/20", owner: 1))
    bench.handle(.missing("/srv/1"))
    bench.handle(.touched("/srv/new"))
    func stores(_ numbers: some Sequence<Int>) -> Set<String> { Set(numbers.map { "/srv/\($0)" }) }
    let even = stores(stride(from: 2, to: 20, by: 2))
    #expect(Set(bench.queue.stores(of: 0)) == even)
    #expect(
      Set(bench.queue.stores(of: 1))
        == stores(stride(from: 3, to: 20, by: 2)).union(["/srv/0", "/srv/20"]))
    #expect(bench.queue.stores(of: 2).isEmpty)
    #expect(bench.queue.stores(of: nil).count == 21)
    let overview = bench.queue.overview(of: 0, failures: 5, at: bench.now)
    #expect(overview.stores == even.count)
    for store in even { bench.handle(.forgotten(store)) }
    #expect(bench.queue.storeCount(ofOwner: 0) == 0)
  }

  @Test("the stores of one owner do not keep another owner's store waiting")
  func owners() {
    var bench = Bench(parallelRuns: 2)
    let mallory = ["/m/1", "/m/2", "/m/3"]
    var started = mallory.flatMap { bench.handle(.interrupted($0, owner: 666)) }
    #expect(started == [.recover("/m/1"), .recover("/m/2")])
    started = bench.handle(.interrupted("/a/1", owner: 1))
    #expect(started.isEmpty)
    // One more than `parallel`, but only after a while.
    #expect(bench.wait(.seconds(59)).isEmpty)
    #expect(bench.queue.nextDeadline != nil)
    #expect(bench.wait(.seconds(1)) == [.recover("/a/1")])
    #expect(bench.handle(.interrupted("/a/2", owner: 1)).isEmpty)
    // The owner with fewer runs is next, although the other one has waited longer.
    #expect(bench.handle(.recovered("/a/1", nil)) == [.recover("/a/2")])
    #expect(bench.handle(.recovered("/m/1", nil)).isEmpty)
    #expect(bench.handle(.recovered("/m/2", nil)) == [.recover("/m/3")])
  }
}
