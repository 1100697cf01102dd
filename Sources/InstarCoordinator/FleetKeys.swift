/// The keys of etcd that hosts share.
///
/// | key | value | ends with |
/// |---|---|---|
/// | `hosts/HOST` | `HostRegistration` | the lease of the host |
/// | `leader` | the name of the host that decides | the lease of the host |
/// | `rollouts/PLAN` | `FleetRollout` | |
/// | `results/ID/HOST` | `HostResult` | |
/// | `slots/PLAN/NUMBER` | the name of the host that has the slot | the lease of the host |
/// | `soaks/ID` | the wave | a lease as long as the soak |
///
/// Slots belong to the plan and not to one rollout: hosts that still finish runs of a halted rollout keep theirs while
/// the next one begins.
///
/// Documents have a prefix of their own: hosts watch it, and must not be woken by each result of 10,000 hosts.
enum FleetKeys {
  static let root = "/instar/v1/"
  static let hosts = root + "hosts/"
  static let leader = root + "leader"
  static let rollouts = root + "rollouts/"

  static func host(_ name: String) -> String { hosts + name }
  static func rollout(ofPlan plan: String) -> String { rollouts + plan }
  static func results(_ id: String) -> String { "\(root)results/\(id)/" }
  static func result(_ id: String, _ host: String) -> String { results(id) + host }
  static func slots(ofPlan plan: String) -> String { "\(root)slots/\(plan)/" }
  static func slot(ofPlan plan: String, _ number: Int) -> String {
    slots(ofPlan: plan) + "\(number)"
  }
  static func soak(_ id: String) -> String { "\(root)soaks/\(id)" }

  /// The last part of a key.
  static func name(of key: String) -> String {
    key.lastIndex(of: "/").map { String(key[key.index(after: $0)...]) } ?? key
  }
}
