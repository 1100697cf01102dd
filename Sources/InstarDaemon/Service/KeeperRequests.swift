import Foundation
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire

/// All work that the daemon gives to keepers. Each method returns at once; its results reach the mailbox.
struct KeeperRequests: Sendable {
  let supervisor: Supervisor
  let log: EventLog
  let metrics: DaemonMetrics
  let mailbox: DaemonMessage.Mailbox
  let reader: FileReader
  /// Work on backups, for which no store waits. One copy of a large backup may take longer than the patience: then work
  /// on other watches begins too.
  var backupWork = WatchQueue(patience: .seconds(60))
  /// Asks about watches before their backups are worked on. A disk may have to start first.
  var backupReader = FileReader(patience: .seconds(30))
  let backupSettings = BackupSettings()
  let checkedWatches = CheckedWatches()
  let countedBackups = CountedBackups()

  /// Recovers the store's runs that an earlier process left. Ends with the message `recovered`.
  ///
  /// - Parameter watch: The path of the store's watch.
  func recover(_ store: String, of watch: String) {
    Task(executorPreference: BlockingExecutor.shared) {
      do throws(InstarError) {
        try await supervisor.recover(store: store) { recovered($0, of: watch) }
        mailbox.yield(.store(.recovered(store, nil)))
      } catch {
        mailbox.yield(.store(.recovered(store, error)))
      }
    }
  }

  private func recovered(_ report: RecoveryReport, of watch: String) {
    log.post(.runRecovered(report))
    if report.outcome == .finished { copyBackups(of: report.store, in: watch) }
  }

  /// Describes plugins. Ends with one message `described` for all of them.
  func describe(_ plugins: [String]) {
    Task(executorPreference: BlockingExecutor.shared) {
      do throws(InstarError) {
        mailbox.yield(.described(try await supervisor.describe(plugins: plugins)))
      } catch {
        mailbox.yield(.described(plugins.map { ($0, .failure(error)) }))
      }
    }
  }

  /// Probes stores: one message `probed` for each store up to the first without an answer of its keeper, then
  /// `probesEnded`.
  ///
  /// - Parameter stores: The stores with the present versions of their files.
  func probe(_ stores: [(path: String, version: WatchedVersion)], _ plans: PlanSelection) {
    guard !stores.isEmpty else {
      mailbox.yield(.store(.probesEnded(nil)))
      return
    }
    let before = Dictionary(firstOf: stores)
    Task(executorPreference: BlockingExecutor.shared) {
      do throws(InstarError) {
        try await supervisor.probe(
          stores: stores.map(\.path), plans: plans, rows: .none, endsAtDeath: true
        ) { report in
          let version = before[report.store]
          send(about: report.store, version) { .probed(report, before: version, after: $0) }
        }
        mailbox.yield(.store(.probesEnded(nil)))
      } catch {
        mailbox.yield(.store(.probesEnded(error)))
      }
    }
  }

  /// Migrates a store. Always ends with one message `runEnded`.
  ///
  /// - Parameters:
  ///   - watch: The path of the store's watch.
  ///   - before: The present version of its file.
  func migrate(
    _ request: MigrationRequest, of watch: String, _ before: WatchedVersion?,
    copyingBackupTo folder: BackupFolder?, priority: ProcessPriority
  ) {
    let store = request.store
    Task(executorPreference: BlockingExecutor.shared) {
      var report: RunReport
      do throws(InstarError) {
        // Steps are posted from here and not through the loop: a plugin that prints much slows down its own run only.
        report = try await supervisor.migrate(
          request, copyingBackupTo: folder, priority: priority,
          onRecovery: { recovered($0, of: watch) },
          onEvent: { event in
            if event.step != .progress { log.post(.run(event)) }
            if [.progress, .stageFinished].contains(event.step) { mailbox.yield(.progress(event)) }
          })
      } catch {
        report = RunReport(
          run: request.run, store: store, result: .failed, startedAt: Date().timeIntervalSince1970)
        report.error = error.about(store: store, state: "unchanged")
      }
      send(about: store, before) { .runEnded(report, before: before, after: $0) }
    }
  }

  /// Sends the result of work on a store, with the version that its file has now.
  ///
  /// While its file system does not answer, nothing says that the file has changed. The scan that follows finds out.
  private func send(
    about store: String, _ before: WatchedVersion?, _ event: (WatchedVersion?) -> StoreQueue.Event
  ) {
    let answer = reader.answers(about: [store], WatchedVersion.init(path:)).first
    mailbox.yield(.store(event(answer ?? before)))
    // After the result: the scan must find a store that rests.
    if answer == nil { mailbox.yield(.silent(store)) }
  }
}
