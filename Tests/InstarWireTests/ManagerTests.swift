import Foundation
import InstarSchema
import InstarWire
import Testing

@Suite("The interface io.instar.Manager")
struct ManagerTests {
  /// The fields of a type in the description.
  private func fields(of type: String) throws -> [String] {
    let start = try #require(Manager.description.range(of: "type \(type) (\n"))
    let rest = Manager.description[start.upperBound...]
    let end = try #require(rest.range(of: ")"))
    return rest[..<end.lowerBound].split(separator: "\n").map {
      String($0.trimmingCharacters(in: .whitespaces).prefix { $0 != ":" })
    }.sorted()
  }

  private func keys(of value: some Encodable) throws -> [String] {
    let object = try JSONSerialization.jsonObject(with: WireCoder.encoder().encode(value))
    return try #require(object as? [String: Any]).keys.sorted()
  }

  @Test("the description of io.instar.Manager has the fields that are sent")
  func types() throws {
    var store = Manager.Store(store: "/srv/a.store", activity: .retrying)
    store.state = .behind
    store.version = Sample.from
    store.plan = "Notes"
    store.planVersion = Sample.to
    store.reason = "a reason"
    store.error = Sample.error
    store.secondsToRetry = 10
    store.wave = 1
    store.turn = .admitted
    store.notRetried = "held"
    var run = Manager.Run(store: "/srv/a.store")
    run.run = "R1"
    run.stage = "1.0.0 → 2.0.0 (1 of 1)"
    run.progress = Sample.event.progress
    let pause = Manager.Pause(by: "anna (1000)", since: 1000, why: "a reason")
    var folder = Manager.Folder(folder: "/srv", error: Sample.error)
    folder.windowIsOpen = false
    folder.windowChangesAt = 1000
    folder.warning = "no plugin has a plan named 'Note'"
    let rollout = Manager.Rollout(
      plan: "NotesPlan", version: Schema.Version(2, 0, 0), wave: 1, waves: 2, stores: 6, waiting: 2,
      admitted: 1, deferred: 1, migrated: 1, failed: 1, unapproved: 1, secondsToNextWave: 10,
      closedWindow: "/srv", halt: pause, failures: ["/srv/a.store"], isFinished: false)
    let refused = Manager.RefusedPlugin(plugin: "/p/a.so", error: Sample.error)
    var status = Manager.Status(
      version: "0.1.0", pid: 17, startedAt: 1000, phase: .running, pause: pause, folders: [folder],
      plugins: [], refusedPlugins: [refused], stores: 1, states: [:], activities: [:],
      rollouts: [rollout], runs: [run],
      failures: [store])
    status.secondsLeft = 90
    status.stateFolder = "/var/lib/instar"
    status.pluginFolders = ["/usr/lib/instar/plugins"]
    status.plans = ["NotesPlan"]
    var hold = Hold(
      id: "H1", store: "/srv/a.store", device: 1, inode: 2, createdNanoseconds: 3,
      by: "anna (1000)", since: 1000, why: "a reason")
    hold.run = "R1"
    let event = Manager.Event(
      event: "run-failed", at: 1000, priority: 3, message: "x", fields: ["INSTAR_RUN": "R1"])
    #expect(try keys(of: event) == fields(of: "Event"))
    #expect(try keys(of: rollout) == fields(of: "Rollout"))
    #expect(try keys(of: store) == fields(of: "Store"))
    #expect(try keys(of: run) == fields(of: "Run"))
    #expect(try keys(of: run.progress) == fields(of: "Progress"))
    #expect(try keys(of: pause) == fields(of: "PauseOrder"))
    #expect(try keys(of: refused) == fields(of: "RefusedPlugin"))
    #expect(try keys(of: hold) == fields(of: "HoldOrder"))
    #expect(try keys(of: folder) == fields(of: "Folder"))
    #expect(try keys(of: status) == fields(of: "Status"))
    #expect(try keys(of: Sample.error) == fields(of: "Error"))
    #expect(try keys(of: Sample.error.rows) == fields(of: "Rows"))
  }

  @Test("types, methods and errors have different names, as systemd's varlinkctl demands")
  func names() {
    let names = Manager.description.matches(of: /(?m)^(?:type|method|error) (\w+)/).map {
      String($0.1)
    }
    #expect(names.count > Manager.Method.allCases.count)
    #expect(names.count == Set(names).count, "\(names.sorted())")
  }

  @Test("the description of io.instar.Manager has each method and each activity")
  func methods() {
    for method in Manager.Method.allCases {
      #expect(Manager.description.contains("\nmethod \(method.rawValue)("))
    }
    for activity in Manager.Activity.allCases {
      #expect(Manager.description.contains(activity.rawValue))
    }
    #expect(Manager.description.contains("never more than \(Manager.historyLimit)."))
  }
}
