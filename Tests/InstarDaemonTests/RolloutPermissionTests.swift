import InstarConfiguration
import InstarLinux
import InstarSchema
import InstarWire
import Testing

@testable import InstarDaemon

@Suite("Rollout: the permission of the fleet")
struct RolloutPermissionTests {
  /// A fleet of hosts coordinates the plan.
  private static func coordinated() -> Fleet {
    var fleet = Fleet(nil)
    fleet.configure { $0.coordinator = CoordinatorSettings() }
    return fleet
  }

  private static func permission(_ seconds: Double?, plan: String = Fleet.plan) -> StoreQueue.Event
  {
    permission(until: seconds.map { .now + .seconds($0) }, plan: plan)
  }

  private static func permission(
    until: ContinuousClock.Instant?, plan: String = Fleet.plan,
    version: Schema.Version = Schema.Version(2, 0, 0), failures: Int? = nil,
    decidedAt: ContinuousClock.Instant = .now
  ) -> StoreQueue.Event {
    .permitted(
      Manager.PermitParameters(
        permissions: [
          Manager.Permission(
            plan: plan, version: version, until: until?.secondsSinceBoot, failures: failures)
        ], decidedAt: decidedAt.secondsSinceBoot))
  }

  private static func noPermission() -> StoreQueue.Event {
    .permitted(
      Manager.PermitParameters(
        permissions: [], decidedAt: ContinuousClock.now.secondsSinceBoot))
  }

  @Test("no store runs without a permission for its plan and version, and the status says why")
  func needed() {
    var fleet = Self.coordinated()
    let stores = Fleet.stores(3)
    #expect(fleet.begins { $0.find(stores) }.isEmpty)
    #expect(fleet.activity(stores[0]) == .queued)
    let reason = fleet.status(of: stores[0])?.reason
    #expect(reason?.contains("instarctl rollout show") == true)
    #expect(fleet.begins { $0.send(Self.permission(10, plan: "OtherPlan")) }.isEmpty)
    let old = Self.permission(until: nil, version: Schema.Version(1, 0, 0))
    #expect(fleet.begins { $0.send(old) }.isEmpty)
    #expect(Set(fleet.begins { $0.send(Self.permission(10)) }) == Set(stores))
    fleet.endAll(stores)
    #expect(fleet.status?.migrated == 3)
  }

  @Test("a retry of a damaged store that the fleet does not permit does nothing, and has a reason")
  func retryOfDamaged() {
    var fleet = Self.coordinated()
    let store = Fleet.stores(1)[0]
    fleet.find([store])
    fleet.send(Self.permission(until: nil))
    let error = InstarError(.corruptStore, "cannot migrate", store: store, cause: "a page")
    fleet.end(store, .refused, error.provingDamage())
    func reasonNotToRetry() -> String? {
      fleet.queue.reasonNotToRetry(store, isAdmin: true, at: fleet.now) { _ in "" }
    }
    #expect(reasonNotToRetry() == nil && fleet.queue.canRetry(store, at: fleet.now))
    fleet.send(Self.noPermission())
    let reason = reasonNotToRetry()
    #expect(reason?.contains("instarctl rollout show") == true)
    #expect(!fleet.queue.canRetry(store, at: fleet.now))
    fleet.retry(store)
    #expect(fleet.status(of: store)?.state == .corrupt)
    fleet.send(Self.permission(until: nil))
    #expect(fleet.begins { $0.retry(store) } == [store])
  }

  @Test("after the end of a permission no run begins, and the runs in progress end as usual")
  func ends() {
    var fleet = Self.coordinated()
    fleet.find(Fleet.stores(1))
    let first = fleet.begins { $0.send(Self.permission(until: $0.now + .seconds(10))) }
    #expect(first == Fleet.stores(1))
    let later = Fleet.stores(3)
    fleet.wait(.seconds(11))
    #expect(fleet.begins { $0.find(later) }.isEmpty)
    fleet.end(later[0])
    #expect(fleet.status?.migrated == 1)
    #expect(fleet.begins { $0.send(Self.permission(nil)) }.count == 2)
    #expect(fleet.begins { $0.wait(.seconds(100_000)) }.isEmpty)
    fleet.send(Self.noPermission())
    #expect(fleet.begins { $0.find(Fleet.stores(4)) }.isEmpty)
  }

  @Test("after a failure no run begins until the fleet has counted it")
  func failures() {
    var fleet = Self.coordinated()
    fleet.configure { $0.parallelRuns = 1 }
    func permission(_ failures: Int) -> StoreQueue.Event {
      Self.permission(until: .now + .seconds(60), failures: failures)
    }
    fleet.find(Fleet.stores(3))
    let first = fleet.begins { $0.send(permission(0)) }
    #expect(first.count == 1)
    #expect(fleet.begins { $0.fail(first[0]) }.isEmpty)
    #expect(fleet.begins { $0.send(permission(1)) }.count == 1)
  }

  @Test("a permission that comes late ends as it was to end, and one that was overtaken is ignored")
  func late() {
    var fleet = Self.coordinated()
    let decided = fleet.now
    let permission = Self.permission(until: decided + .seconds(10), decidedAt: decided)
    fleet.find(Fleet.stores(2))
    fleet.wait(.seconds(11))
    #expect(fleet.begins { $0.send(permission) }.isEmpty)
    let longer = Self.permission(until: decided + .seconds(100), decidedAt: decided + .seconds(5))
    #expect(fleet.begins { $0.send(longer) }.count == 2)
    fleet.send(Self.permission(until: nil, plan: "Other", decidedAt: decided + .seconds(8)))
    #expect(
      fleet.begins {
        $0.send(longer)
        $0.find(Fleet.stores(3))
      }.isEmpty)
  }

  @Test("runs are counted by plan, and a closed window is told that all stores wait for")
  func running() throws {
    var fleet = Self.coordinated()
    let window = TimeWindow(opens: [try CalendarEvent("22:00")], length: .seconds(3600))
    fleet.configure { $0.watches[1].window = window }
    let open = Fleet.stores(1)
    let closed = Fleet.stores(2, in: "/late")
    fleet.find(open + closed)
    #expect(fleet.status?.closedWindow == nil)
    fleet.send(Self.permission(until: nil))
    #expect(fleet.queue.runningCounts == [Fleet.plan: 1])
    #expect(fleet.status?.closedWindow == nil)
    fleet.end(open[0])
    #expect(fleet.queue.runningCounts.isEmpty)
    #expect(fleet.status?.closedWindow == "/late")
    // Also when the permission is gone: the host must not come again before the window opens.
    fleet.send(Self.noPermission())
    #expect(fleet.status?.closedWindow == "/late")
    fleet.send(.windowsKnown(["/late": TimeWindow.State(isOpen: true)]))
    #expect(fleet.status?.closedWindow == nil)
  }

  /// For what the metrics say that the rollout of the plan waits (1) or does not wait (0).
  private func waits(of fleet: Fleet, in metrics: DaemonMetrics) -> [String: Int] {
    metrics.show(
      DaemonMetrics.Snapshot(
        queue: fleet.queue, isPaused: false, watches: 2, unreadableWatches: 0, plugins: 1,
        keeperRestarts: 0), at: fleet.now)
    let series = #/instar_rollout_waits\{plan="NotesPlan",for="(\w+)"\} (\d+)\n/#
    let waits = metrics.text.matches(of: series).map { (String($0.1), Int($0.2) ?? -1) }
    return Dictionary(waits) { _, _ in -1 }
  }

  @Test("a metric says that a rollout waits for a permission, or for a window")
  func waits() throws {
    var fleet = Self.coordinated()
    let window = TimeWindow(opens: [try CalendarEvent("22:00")], length: .seconds(3600))
    fleet.configure { $0.watches[0].window = window }
    fleet.find(Fleet.stores(1))
    let metrics = DaemonMetrics(version: "1", startedAt: 0)
    #expect(waits(of: fleet, in: metrics) == ["window": 1, "permission": 1])
    fleet.send(Self.permission(until: nil))
    #expect(waits(of: fleet, in: metrics) == ["window": 1, "permission": 0])
    fleet.send(.windowsKnown(["/srv": TimeWindow.State(isOpen: true)]))
    #expect(fleet.begun == Fleet.stores(1))
    #expect(waits(of: fleet, in: metrics) == ["window": 0, "permission": 0])
  }

  @Test("of two rollouts with one name, the metric says so only if each that is not done waits")
  func waitsOfOneName() {
    var fleet = Self.coordinated()
    fleet.send(.pluginsKnown([Fleet.plugin(1), Fleet.plugin(1, path: "/p/Mail.so")]))
    fleet.lastVersions = ["/p/Mail.so": Schema.Version(7, 0, 0)]
    let (store, other) = ("/srv/0.store", "/late/0.store")
    fleet.plugins[other] = "/p/Mail.so"
    fleet.find([store, other])
    let metrics = DaemonMetrics(version: "1", startedAt: 0)
    #expect(waits(of: fleet, in: metrics)["permission"] == 1)
    #expect(fleet.begins { $0.send(Self.permission(until: nil)) } == [store])
    #expect(waits(of: fleet, in: metrics)["permission"] == 0)
    fleet.end(store)
    #expect(waits(of: fleet, in: metrics)["permission"] == 1)
  }

  @Test("a host whose configuration has no coordinator any more needs no permission")
  func notConfigured() {
    var fleet = Self.coordinated()
    let stores = Fleet.stores(2)
    fleet.find(stores)
    fleet.configuration.coordinator = nil
    let begun = fleet.begins { $0.reload(policy: .automatic) }
    #expect(Set(begun) == Set(stores))
  }
}
