import InstarConfiguration
import InstarSchema
import InstarWire

/// The lease of this host, and its registration, which lasts as long as the lease.
extension Coordinator {
  struct Session {
    var lease: Int64
    /// A time just before the last renewal was sent: etcd counts the lease from a later one.
    var renewed: ContinuousClock.Instant
    var isRegistered = false
  }

  /// Makes a lease, or renews it when a third of it has passed or when it is in doubt. If the lease has ended, this
  /// host has lost its registration and its slots.
  func keepSession(_ now: ContinuousClock.Instant) async throws(InstarError) {
    if let current = session {
      guard isLeaseInDoubt || now - current.renewed >= settings.lease / 3 else { return }
      if try await etcd.renewLease(current.lease) != nil {
        session?.renewed = now
        isLeaseInDoubt = false
        return
      }
      log.write(.leaseLost, "the lease of this host has ended; its slots are free")
      dropSession()
    }
    let seconds = Int64(settings.lease.inSeconds.rounded(.up))
    session = Session(lease: try await etcd.grantLease(seconds: seconds), renewed: now)
    isLeaseInDoubt = false
  }

  /// Forgets the lease and all that ended with it in etcd: the registration, the slots and the leadership.
  func dropSession() {
    session = nil
    registration = nil
    for plan in parts.keys {
      parts[plan]?.slot = nil
      parts[plan]?.returning = nil
    }
    leader.stop()
  }

  /// Registers this host, or updates the number of its stores, at most three times in the time of a lease. Writes
  /// nothing while another host has the name.
  func register(
    _ reply: Manager.PermitReply, _ now: ContinuousClock.Instant
  ) async throws(InstarError) {
    guard var current = session, reply.isCounted else { return }
    let new = HostRegistration(
      release: Release.version,
      plans: reply.rollouts.map {
        HostRegistration.Plan(
          plan: $0.plan, version: $0.version, stores: $0.stores,
          behind: $0.waiting + $0.admitted + $0.deferred)
      })
    let isOld = registeredAt.map { now - $0 >= settings.lease / 3 } ?? true
    guard !current.isRegistered || new != registration && isOld else { return }
    let key = FleetKeys.host(host)
    // The key is absent, or has this lease (an attempt whose answer was lost). Otherwise this host's earlier process
    // has it until its lease ends, or another host uses the name.
    let conditions: [EtcdCondition] =
      current.isRegistered
      ? [.hasLease(key, current.lease)] : [.isAbsent(key), .hasLease(key, current.lease)]
    let change = EtcdChange.put(key, try Fleet.encoded(new), lease: current.lease)
    var isWritten = false
    for condition in conditions where !isWritten {
      isWritten = try await etcd.transaction(if: [condition], [change]) != nil
    }
    guard isWritten else {
      if current.isRegistered {
        // Somebody deleted it.
        session?.isRegistered = false
      } else {
        noteTakenName(now)
      }
      return
    }
    if !current.isRegistered { log.write(.hostRegistered, "registered this host as '\(host)'") }
    current.isRegistered = true
    session = current
    registration = new
    registeredAt = now
    nameTakenSince = nil
    log.forget(.hostNameTaken)
  }

  /// Reports a taken name after twice the time of a lease: before that, the key may be left from an earlier process of
  /// this host.
  private func noteTakenName(_ now: ContinuousClock.Instant) {
    let since = nameTakenSince ?? now
    nameTakenSince = since
    guard now - since > settings.lease * 2 else { return }
    log.note(
      .hostNameTaken,
      InstarError(
        .rolloutRefused, "cannot register this host as '\(host)'",
        cause: "another host is registered under this name",
        next: "give each host its own 'coordinator.host' in instard.yml, then run: "
          + "systemctl restart instar-coordinator"))
  }
}
