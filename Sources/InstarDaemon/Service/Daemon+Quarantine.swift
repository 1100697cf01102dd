import InstarSchema
import InstarSupervisor
import InstarWire

/// The records of quarantined stores. An error stops nothing: without the records, stores are only retried in vain.
extension Daemon {
  /// Restores the quarantine of an earlier daemon, as far as neither Instar nor the settings changed.
  mutating func readQuarantine() {
    do throws(InstarError) {
      guard let (records, unreadable) = try supervisor.stateFolder?.quarantineRecords() else {
        return
      }
      for error in unreadable { log.post(.problem(error)) }
      let valid = records.filter(isUpToDate)
      queue.restore(valid)
      let kept = Set(valid.map(\.store))
      endQuarantine(of: records.map(\.store).filter { !kept.contains($0) })
    } catch {
      log.post(.problem(error))
    }
  }

  private func isUpToDate(_ record: QuarantineRecord) -> Bool {
    // No setting repairs a damaged store.
    record.release == Release.version && configuration.watch(ofStore: record.store) != nil
      && (record.verdict?.state == .corrupt || record.request == circumstances(of: record.store))
  }

  /// The request of a run of a store without its plugins. The queue compares the plugins itself.
  private func circumstances(of store: String) -> MigrationRequest {
    var request = request(store, nil)
    request.run = ""
    request.plans.plugins = []
    return request
  }

  func keep(_ record: QuarantineRecord) {
    var record = record
    record.request = circumstances(of: record.store)
    do throws(InstarError) {
      try supervisor.stateFolder?.setQuarantine(record)
    } catch {
      log.post(.problem(error))
    }
  }

  func endQuarantine(of stores: [String]) {
    do throws(InstarError) {
      try supervisor.stateFolder?.endQuarantine(of: stores)
    } catch {
      log.post(.problem(error))
    }
  }
}
