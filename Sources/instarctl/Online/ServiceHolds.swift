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

  /// Has instard hold a store. If instard refuses, says so: an undo must not depend on it.
  ///
  /// - Returns: Whether this call placed a hold.
  mutating func place(on store: String, why: String) -> Bool {
    guard state.isBesideService else { return false }
    let instard: DaemonConnection
    do throws(InstarError) {
      instard = try SocketOptions.connection(to: nil)
    } catch {
      // It does not run. `noteOtherDaemon` says what it will not see.
      return false
    }
    wasAsked = true
    do throws(InstarError) {
      let order = Manager.HoldParameters(store: store, why: why)
      return try instard.call(.hold, order, returning: Manager.HoldReply.self).hold != nil
    } catch {
      guard error.code != .heldStore, !HoldRecords.isUnwatched(store, error) else { return false }
      Console.note(
        "warning: instard may migrate '\(store)' again after this restore: \(error.what): \(error.cause)"
      )
      return false
    }
  }

  /// Ends the hold on a store that was not restored.
  func remove(from store: String) {
    do throws(InstarError) {
      // The restore may have taken longer than instard keeps a silent connection.
      _ = try SocketOptions.connection(to: nil).call(
        .release, Manager.ReleaseParameters(store: store), returning: Manager.HoldReply.self)
    } catch {
      Console.note(
        "warning: instard still holds '\(store)': \(error.what): \(error.cause); to end the hold, run: "
          + "\(CommandText.release(store))")
    }
  }
}
