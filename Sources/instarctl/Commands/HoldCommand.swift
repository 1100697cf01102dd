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
      that opens the store with its plan still migrates it. A hold survives restarts. It applies to the \
      path, with links resolved, and to the file: a store that was moved is still held, and so is a file \
      that took its place. 'instarctl restore' places a hold by itself.

      If you may not read the service's state folder, instarctl asks instard to hold your own stores in watched \
      folders. Holds on other stores go to your own state folder, which instard does not read.

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

  @OptionGroup var records: RecordOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard stores.isEmpty == (why == nil) else {
      throw ValidationError(
        stores.isEmpty ? "name the stores to hold" : "a hold needs a reason: --why 'TEXT'")
    }
  }

  func perform() async throws(InstarError) -> ExitStatus {
    var holds = try HoldRecords(records)
    guard let why else { return try list(holds) }
    let supervisor = try Supervisor()
    // The hold of a store whose probe is interrupted ends.
    let interruption = try Interruption { supervisor.cancel() }
    defer { withExtendedLifetime(interruption) {} }
    var status = ExitStatus.done
    var hasPlaced = false
    for store in FilePath.ofStores(stores) {
      var answer = HoldReport(store: store, places: holds.text)
      do throws(InstarError) {
        if interruption.hasHappened { throw interrupted(store, why) }
        try FilePath.requireAnswer(about: store, to: "hold")
        try FilePath.requireStore(store, to: "hold")
        // Before the probe, which may wait for a lock while a run of the store reaches its cutover.
        let placed = try holds.hold(store, why: why)
        do throws(InstarError) {
          try await requireStore(store, supervisor)
        } catch {
          let cause = error.code == .interrupted ? interrupted(store, why) : error
          throw end(placed, in: &holds, after: cause)
        }
        answer.hold = placed?.hold
        hasPlaced = true
      } catch {
        answer.error = error
        status = .gravest(status, ExitStatus(for: error))
      }
      output.write(answer)
    }
    if hasPlaced, holds.mayMissInstard { records.state.noteOtherDaemon() }
    return status
  }

  /// Ends the hold on what is not a store, or was not probed to the end.
  ///
  /// - Returns: The error of the store, also with that of ending the hold.
  private func end(
    _ placed: PlacedHold?, in holds: inout HoldRecords, after error: InstarError
  ) -> InstarError {
    guard let placed else { return error }
    do throws(InstarError) {
      try holds.end(placed)
      return error
    } catch let second {
      var both = error
      both.cause += "; the hold did not end: \(second.what): \(second.cause)"
      both.state = "unchanged and held"
      both.next = command(placed.hold.releaseCommand, on: placed.hold.store)
      return both
    }
  }

  private func interrupted(_ store: String, _ why: String) -> InstarError {
    let command = "instarctl hold --why \(CommandText.quoted(why)) \(CommandText.quoted(store))"
    return InstarError(
      .interrupted, "cannot hold '\(store)'", store: store,
      cause: "interrupted before the file was found to be a store", state: "unchanged",
      next: self.command(command, on: store))
  }

  /// The advice to run a command on a store in the same place.
  private func command(_ command: String, on store: String) -> String {
    "run: "
      + (records.namesInstard
        ? command + records.socket.option
        : records.state.forReading.completing(command, store: store))
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

  private func list(_ all: HoldRecords) throws(InstarError) -> ExitStatus {
    let (holds, unreadable) = try all.holds()
    if output.json {
      for hold in holds {
        output.write(HoldReport(store: hold.store, places: all.text, hold: hold))
      }
    } else if holds.isEmpty, unreadable.isEmpty {
      Console.note("no store is held \(all.text)")
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

      instard migrates a store that is behind as soon as it is released. Owners can release their own \
      stores, even if an operator placed the hold.
      """)

  @Argument(
    help: ArgumentHelp("A store.", valueName: "store"), completion: .heldStores,
    transform: FilePath.typed)
  var stores: [String]

  @OptionGroup var records: RecordOptions
  @OptionGroup var output: OutputOptions

  func perform() async throws(InstarError) -> ExitStatus {
    var holds = try HoldRecords(records)
    var status = ExitStatus.done
    for store in FilePath.ofStores(stores) {
      var answer = HoldReport(store: store, places: holds.text, isRelease: true)
      do throws(InstarError) {
        try FilePath.requireAnswer(about: store, to: "release")
        answer.hold = try holds.release(store)
        // The hold of a store that is gone can be released. Without one, the path may be mistyped.
        if answer.hold == nil { try FilePath.requireStore(store, to: "release") }
      } catch {
        answer.error = error
        status = .gravest(status, ExitStatus(for: error))
      }
      output.write(answer)
    }
    return status
  }
}
