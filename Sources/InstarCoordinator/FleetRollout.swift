import Foundation
import InstarConfiguration
import InstarSchema
import InstarWire

/// One plan's way over many hosts, as its document in etcd has it.
///
/// The document is small, whatever the number of hosts: each host computes its wave from its name, the identifier of
/// the rollout and the bounds of the waves. These never change, so a host is in one wave, the same for everybody.
///
/// States:
///
/// ```text
/// wave 1 open ──▶ soaking ──▶ wave 2 open ──▶ … ──▶ last wave open ──▶ done
/// ```
///
/// In each state but `done` the rollout can be paused or halted, and goes on where it was when it is resumed.
///
/// Invariants:
/// - The document changes by a transaction that compares the revision at which it was read.
/// - A host migrates only while its wave is open or has ended, and the rollout is running.
package struct FleetRollout: Sendable, Codable, Hashable {
  /// What operators and the budget say.
  package enum State: String, Sendable, Codable, Hashable {
    case running
    /// An operator stopped it for a while.
    case paused
    /// Failures beyond the budget stopped it, or an operator.
    case halted
    /// All its hosts are verified.
    case done
  }

  /// The format of documents that this release writes, and the newest one that it reads.
  static let currentFormat = 1
  /// The most waves of a rollout.
  static let waveLimit = 1000

  var format = currentFormat
  /// Tells this rollout apart from earlier ones of the plan.
  var id: String
  var plan: String
  /// The last version of the plan.
  var version: Schema.Version
  /// Who began it, and when, in seconds since 1970.
  var by: String
  var began: Double
  /// What it may do now.
  package var state = State.running
  /// Why it is paused or halted.
  package var why: String?
  /// The wave that is open, or ended last; from 1.
  package var wave = 1
  /// The wave has ended, and the next one opens when the soak is over.
  package var isSoaking = false
  /// How many hosts have had their turn when each wave ends, as the operator wrote it.
  var steps: [String]
  /// The last place of each wave but the last one: see `place(of:in:)`.
  var bounds: [UInt64]
  /// How many hosts had stores of the plan when the rollout began.
  var hosts: Int
  /// How many hosts may migrate at the same time.
  var slots: Int
  /// How long to wait between two waves, in seconds.
  var soakSeconds: Int64
  /// How many stores may fail, as the operator wrote it; `nil` for no limit.
  var budget: String?
  /// The same, of the stores that were behind on all hosts when the rollout began.
  var allowedFailures: Int?
  /// Failures that an operator has forgiven by resuming the rollout.
  var forgivenFailures = 0

  /// Whether all values are in their ranges. Anybody with a certificate can write the document.
  var isPlausible: Bool {
    (1...100_000).contains(slots) && (1...waves).contains(wave) && waves <= Self.waveLimit
      && isPlausibleName(id) && isPlausibleName(plan) && (0...1_000_000).contains(hosts)
      && (0...Int64(1) << 32).contains(soakSeconds) && isPlausibleCount(forgivenFailures)
      && isPlausibleCount(allowedFailures ?? 0)
  }

  /// How many waves there are.
  var waves: Int { bounds.count + 1 }

  /// The place of a host in the order in which hosts have their turn: a hash of the identifier and the name, mixed so
  /// that names with a common beginning are spread. Like `stableHash`, it never changes.
  static func place(of host: String, in id: String) -> UInt64 {
    var hash = "\(id)/\(host)".stableHash
    // The finalizer of MurmurHash3.
    hash = (hash ^ (hash >> 33)) &* 0xff51_afd7_ed55_8ccd
    hash = (hash ^ (hash >> 33)) &* 0xc4ce_b9fe_1a85_ec53
    return hash ^ (hash >> 33)
  }

  /// The wave of a host, from 1. A host that came after the rollout began has one too.
  func wave(of host: String) -> Int {
    let place = Self.place(of: host, in: id)
    return (bounds.firstIndex { place <= $0 } ?? bounds.count) + 1
  }

  /// Whether a host may migrate, once it has a slot: its wave is open or has ended.
  func hasReached(_ host: String) -> Bool {
    state == .done || state == .running && wave(of: host) <= wave
  }

  /// The numbers of the slots that a host may take now.
  ///
  /// A former rollout of the plan may have had more slots, and hosts that still finish its runs keep theirs. For each
  /// of these slots whose number is too high for this rollout, one slot of this rollout stays free. Such slots only
  /// become fewer, so hosts that read at different times never take more than `slots` together.
  func freeSlots(taken: Set<Int>) -> Set<Int> {
    var own = slots
    while own > 0, own + taken.count(where: { $0 >= own }) > slots { own -= 1 }
    return Set(0..<own).subtracting(taken)
  }

  /// The bounds of the waves that give each step its number of these hosts.
  static func bounds(
    of steps: [RolloutSettings.Share], hosts: [String], id: String
  ) -> [UInt64] {
    let places = hosts.map { place(of: $0, in: id) }.sorted()
    return steps.dropLast().compactMap { step in
      let count = min(step.stores(of: places.count), places.count)
      return count > 0 ? places[count - 1] : nil
    }
  }
}

extension FleetRollout {
  /// How far the rollout is, after its name in a line: "is in wave 2 of 4".
  var standing: String {
    switch state {
    case .done, .paused, .halted: "is \(state.rawValue)"
    case .running: "is \(isSoaking ? "behind" : "in") wave \(wave) of \(waves)"
    }
  }

  /// What changed, in one line; `nil` if nothing did.
  ///
  /// - Parameter old: The same rollout before; `nil` if it was not known.
  func change(since old: FleetRollout?) -> (event: CoordinatorEvent, message: String)? {
    let name = "the rollout of \(plan) to \(version)"
    if let old, (old.state, old.wave, old.isSoaking) == (state, wave, isSoaking) { return nil }
    let reason = why.map { ": \($0)" } ?? ""
    switch state {
    case .done: return (.rolloutFinished, "\(name) is done")
    case .paused: return (.rolloutPaused, "\(name) is paused\(reason)")
    case .halted: return (.rolloutHalted, "\(name) is halted\(reason)")
    case .running where isSoaking:
      return (
        .waveDone,
        "wave \(wave) of \(waves) of \(name) has ended; the next one opens in \(soakSeconds) s"
      )
    case .running: return (.waveOpened, "wave \(wave) of \(waves) of \(name) is open")
    }
  }
}

/// Whether a text can be a part of a key, and of a line of the journal.
private func isPlausibleName(_ text: String) -> Bool {
  (1...300).contains(text.utf8.count) && !text.contains("/") && text == text.escapedForTerminal
}
