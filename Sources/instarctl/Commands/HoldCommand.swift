import ArgumentParser
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire
import Synchronization

/// `instarctl hold`
struct HoldCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "hold",
    abstract:
      "Keep instard and 'instarctl migrate' from migrating stores, or list the held stores.",
    usage: """
      instarctl hold --why <reason> [<option> ...] <store> ...
      instarctl hold [<option> ...]
      """,
    discussion: """
        instarctl hold --why 'auditing until Friday' a.store
        instarctl release a.store

      instard and 'instarctl migrate' with the same state folder do not migrate a held store. An app \
      that opens the store with its plan still migrates it. A hold \
      survives restarts. It belongs to the path and to the file: a store that was moved is still held, \
      and so is a file that took its place. 'instarctl restore' places a hold by itself.

      A run that is already in progress stops before its cutover. Without a store, hold lists all holds.
      """)

  @Argument(
    help: ArgumentHelp("A store.", valueName: "store"), completion: .stores,
    transform: FilePath.typed)
  var stores: [String] = []

  @Option(
    help: ArgumentHelp("The reason, for whoever finds the hold.", valueName: "reason"),
    transform: { text in
      guard !text.isEmpty, !text.contains(where: \.isNewline) else {
        throw ValidationError("a reason is one line of text")
      }
      return text
    })
  var why: String?

  @OptionGroup var state: StateOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard stores.isEmpty == (why == nil) else {
      throw ValidationError(
        stores.isEmpty ? "name the stores to hold" : "a hold needs a reason: --why 'TEXT'")
    }
  }

  func perform() async throws(InstarError) -> ExitStatus {
    guard let why else { return try list() }
    let folder = try state.open()
    let user = ProcessIdentity.nameOfCaller
    let supervisor = try Supervisor()
    var status = ExitStatus.done
    var hasPlaced = false
    for store in stores.map(FilePath.ofStore) {
      var answer = HoldReport(store: store, stateFolder: state.path)
      do throws(InstarError) {
        try await requireStore(store, supervisor)
        answer.hold = try folder.hold(store, by: user, why: why)
        hasPlaced = true
      } catch {
        answer.error = error
        status = .gravest(status, ExitStatus(for: error))
      }
      output.write(answer)
    }
    if hasPlaced { state.noteOtherDaemon() }
    return status
  }

  /// Refuses what is not a store, as `migrate` does. A store that is damaged, locked or unreadable can be held.
  private func requireStore(_ store: String, _ supervisor: Supervisor) async throws(InstarError) {
    let probe = Mutex<ProbeReport?>(nil)
    try await supervisor.probe(stores: [store], plans: [], rows: .none) { report in
      probe.withLock { $0 = report }
    }
    guard let report = probe.withLock({ $0 }) else { return }
    let what = "cannot hold '\(store)'"
    if let error = report.error, [.missingStore, .unsafePath].contains(error.code) {
      throw error.about(what, store: store, state: "unchanged")
    }
    if report.state == .notAStore {
      throw InstarError(
        .notAStore, what, store: store, cause: report.reason ?? "not a store", state: "unchanged",
        next: "name the file of a store")
    }
  }

  private func list() throws(InstarError) -> ExitStatus {
    let (holds, unreadable) = try state.forReading.holds()
    if output.json {
      for hold in holds {
        output.write(HoldReport(store: hold.store, stateFolder: state.path, hold: hold))
      }
    } else if holds.isEmpty, unreadable.isEmpty {
      Console.note("no store is held in '\(state.path)'")
    } else if !holds.isEmpty {
      Console.write(HoldReport.table(of: holds))
    }
    for error in unreadable { output.report(error) }
    return unreadable.isEmpty ? .done : .failed
  }
}

/// `instarctl release`
struct ReleaseCommand: InstarCommand {
  static let configuration = CommandConfiguration(
    commandName: "release",
    abstract: "End the holds of stores.",
    usage: "instarctl release [<option> ...] <store> ...",
    discussion: """
        instarctl release a.store

      instard migrates a store that is behind as soon as it is released.
      """)

  @Argument(
    help: ArgumentHelp("A store.", valueName: "store"), completion: .heldStores,
    transform: FilePath.typed)
  var stores: [String]

  @OptionGroup var state: StateOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    let folder = try state.open()
    var status = ExitStatus.done
    for store in stores.map(FilePath.ofStore) {
      var answer = HoldReport(store: store, stateFolder: state.path, isRelease: true)
      do throws(InstarError) {
        answer.hold = try folder.release(store)
      } catch {
        answer.error = error
        status = .gravest(status, ExitStatus(for: error))
      }
      output.write(answer)
    }
    return status
  }
}
