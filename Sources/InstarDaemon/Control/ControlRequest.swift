import Glibc
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire

/// What a client asks the daemon's loop for.
struct ControlRequest: Sendable {
  enum Method: Sendable {
    case status
    /// The paths of all stores that the client may see, in no order.
    case stores
    /// Whether the client owns one of the stores.
    case ownsStore
    /// What is known about these stores.
    case store([String])
    case retry([String])
    case rescan
    case pause(why: String?, plan: String?)
    case resume(plan: String?)
    case approve(plan: String?, stores: [String])
    case permit(Manager.PermitParameters)
    /// Whether instard watches a store that the client wants to do something with. Its path has two spellings: as the
    /// client wrote it, and as the state folder does.
    case checkWatched(to: String, store: String, StorePath)
    /// The hold of a store was placed or released. The store has several paths where the held file was moved.
    case holdsChanged(of: [String])
  }

  enum Reply: Sendable {
    case status(Manager.Status)
    case stores([String])
    case ownsStore(Bool)
    case store([Manager.Store])
    case retried(Manager.RetryReply)
    case done
    case permitted(Manager.PermitReply)
    case failed(InstarError)
  }

  var method: Method
  var client: ControlClient
  /// Called once, on the loop.
  var reply: @Sendable (Reply) -> Void
}

/// A client of the control socket, with its rights.
///
/// Root, the daemon's own user, and the members of the group `instar-admin` see and steer all stores, and the daemon.
/// Everybody else sees and steers the stores that they own.
struct ControlClient: Sendable, Hashable {
  /// The group whose members may do what root may.
  static let adminGroup = "instar-admin"
  /// The user of instar-coordinator, which may permit runs and nothing else.
  static let coordinatorUser = "instar-coordinator"

  var user: UInt32
  var isAdmin: Bool
  /// Whether the client may say which plans this host migrates now.
  var mayPermit: Bool

  /// - Parameters:
  ///   - adminGroup: The number of the group; `nil` where the machine has none.
  ///   - coordinator: The number of instar-coordinator's user; `nil` where the machine has none.
  init(_ peer: UnixSocket.Peer, adminGroup: UInt32?, coordinator: UInt32? = nil) {
    user = peer.uid
    // An administrator is not enough: the fleet decides, and `coordinator` in the configuration says whether it does.
    mayPermit = peer.uid == 0 || peer.uid == geteuid() || peer.uid == coordinator
    isAdmin =
      peer.uid == 0 || peer.uid == geteuid() || adminGroup.map(peer.groups.contains) == true
  }

  /// "anna (1000)".
  var name: String { ProcessIdentity.label(of: user) }

  /// "anna", or the user's number.
  var login: String { getpwuid(user).map { String(cString: $0.pointee.pw_name) } ?? "\(user)" }

  /// Whose stores the client may see; `nil` for those of all users.
  var visibleOwner: UInt32? { isAdmin ? nil : user }

  func maySee(storeOf owner: UInt32?) -> Bool { isAdmin || owner == user }

  /// The error for a store that this client does not own. It does not tell whether instard knows the store.
  func refusal(to act: String, _ store: String) -> InstarError {
    InstarError(
      .notPermitted, "cannot \(act) '\(store)'", store: store,
      cause: "\(name) does not own a watched store at this path, and is neither root nor a member "
        + "of the group \(Self.adminGroup)",
      next: "to list your stores, run: instarctl stores")
  }
}
