import InstarWire

/// How many stores the queue knows, and in which states they are.
extension StoreQueue {
  /// Stores that the queue knows, in any state.
  var storeCount: Int { entries.count }

  /// Their paths, in no order.
  var stores: [String] { entries.keys }

  /// Returns the paths of the stores in those of their folders that are wanted, in no order.
  func stores(inFolders isWanted: (String) -> Bool) -> [String] {
    entries.folders(where: isWanted).flatMap { entries.paths(in: $0) }
  }

  /// Stores that are running or recovering.
  var runningCount: Int { slots.count }

  /// Stores that run or recover, by plan; under "" those that recover before their first probe.
  var runningCounts: [String: Int] {
    slots.keys.reduce(into: [:]) { $0[entries[$1]?.rolloutKey?.plan ?? "", default: 0] += 1 }
  }

  /// Stores that are not retried before they or the plugins change.
  var quarantinedCount: Int { activityCounts[.quarantined] ?? 0 }

  /// Stores that wait for a probe.
  var probeQueueLength: Int { probeQueue.count }

  /// Stores that wait for a probe or a run; one that was queued twice counts twice.
  var queuedCount: Int {
    probeQueue.count + runQueue.count + heldBack.values.reduce(0) { $0 + $1.count }
  }
}
