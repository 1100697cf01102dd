import InstarControl
import InstarSchema
import InstarWire

/// The holds that a `restore` asks the service's instard for, if the service does not read the holds of this user.
///
/// The restore itself places a hold in the user's own state folder. instard would migrate the store again at once.
struct ServiceHolds {
  private let state: StateOptions
  /// Whether instard was asked, so that it holds the stores that it watches.
  private(set) var wasAsked = false

  init(_ state: StateOptions) {
    self.state = state
  }

  /// The reason of the hold in both places. By the run in it, a later command finds the hold in instard.
  static func reason(ofRun run: String) -> String { "restored by run \(run)" }

  /// Has instard hold a store. If instard refuses, says so: an undo must not depend on it.
  ///
  /// - Parameter run: The restore.
  /// - Returns: The hold that this call placed.
  mutating func place(on store: String, forRun run: String) -> Hold? {
    guard state.isBesideService else { return nil }
    let instard: DaemonConnection
    do throws(InstarError) {
      instard = try SocketOptions.connection(to: nil)
    } catch {
      // It does not run. `noteOtherDaemon` says what it will not see.
      return nil
    }
    wasAsked = true
    do throws(InstarError) {
      let order = Manager.HoldParameters(store: store, why: Self.reason(ofRun: run))
      return try instard.call(.hold, order, returning: Manager.HoldReply.self).hold
    } catch {
      guard error.code != .heldStore, !HoldRecords.isUnwatched(store, error) else { return nil }
      Console.note(
        "warning: instard may migrate '\(store)' again after this restore: \(error.what): \(error.cause)"
      )
      return nil
    }
  }

  /// Ends the hold that `place` returned, on a store that was not restored.
  func remove(_ hold: Hold, from store: String) {
    do throws(InstarError) {
      // The restore may have taken longer than instard keeps a silent connection.
      try Self.release(hold, on: store, by: SocketOptions.connection(to: nil))
    } catch {
      Self.warn("instard still holds '\(store)'", store, error)
    }
  }

  /// Ends the hold that an earlier command placed for a restore, which a recovery has discarded since.
  static func removeHold(ofRun run: String, from store: String) {
    do throws(InstarError) {
      let instard = try SocketOptions.connection(to: nil)
      let holds = try instard.call(.listHolds, returning: Manager.HoldsReply.self).holds
      guard let hold = holds.first(where: { $0.why == reason(ofRun: run) }) else { return }
      try release(hold, on: store, by: instard)
    } catch {
      warn("instard may still hold '\(store)' for the restore of run \(run)", store, error)
    }
  }

  private static func release(
    _ hold: Hold, on store: String, by instard: DaemonConnection
  ) throws(InstarError) {
    _ = try instard.call(
      .release, Manager.ReleaseParameters(store: store, hold: hold.id),
      returning: Manager.HoldReply.self)
  }

  private static func warn(_ fact: String, _ store: String, _ error: InstarError) {
    Console.note(
      "warning: \(fact): \(error.what): \(error.cause); to end the hold, run: "
        + "\(CommandText.release(store))")
  }
}
