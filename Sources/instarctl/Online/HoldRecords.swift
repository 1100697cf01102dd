import Glibc
import InstarControl
import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire

/// Who keeps the holds that a command reads or changes: a running instard, a state folder, or both.
///
/// An ordinary user has both: instard for the user's stores that the service watches, and a state folder for those that
/// the user migrates with instarctl.
struct HoldRecords {
  private let options: RecordOptions
  private let instard: DaemonConnection?
  private var folder: StateFolder?

  /// - Throws: `daemonNotReachable`; `missingFile` where the state folder that the user named does not exist.
  init(_ options: RecordOptions) throws(InstarError) {
    self.options = options
    try options.state.requireNamed("cannot read or change holds")
    instard = try options.instard()
  }

  /// Whether a hold was changed in the state folder, and no instard said that it does not watch the store.
  var mayMissInstard: Bool { folder != nil && instard == nil }

  /// Where was searched, in words.
  var text: String {
    if options.namesInstard { return "by instard" }
    return (instard == nil ? "" : "by instard or ") + "in '\(options.state.path)'"
  }

  mutating func hold(_ store: String, why: String) throws(InstarError) -> PlacedHold? {
    var isInFolder = false
    let hold = try change(store) { (instard) throws(InstarError) in
      try instard.call(
        .hold, Manager.HoldParameters(store: store, why: why), returning: Manager.HoldReply.self)
    } inFolder: { (folder) throws(InstarError) in
      isInFolder = true
      return try folder.hold(store, by: ProcessIdentity.nameOfCaller, why: why)
    }
    return hold.map { PlacedHold(hold: $0, store: store, isInFolder: isInFolder) }
  }

  /// Ends a hold that `hold` placed, and no other: the store may have one in the other place.
  mutating func end(_ placed: PlacedHold) throws(InstarError) {
    guard !placed.isInFolder else {
      try openFolder().release(placed.hold)
      return
    }
    // The command may have taken longer than instard keeps a silent connection.
    guard let instard = try options.instard() ?? instard else { return }
    _ = try instard.call(
      .release, Manager.ReleaseParameters(store: placed.store, hold: placed.hold.id),
      returning: Manager.HoldReply.self)
  }

  /// - Returns: The hold that has ended; `nil` where there was none.
  mutating func release(_ store: String) throws(InstarError) -> Hold? {
    let released = try change(store) { (instard) throws(InstarError) in
      try instard.call(
        .release, Manager.ReleaseParameters(store: store), returning: Manager.HoldReply.self)
    } inFolder: { (folder) throws(InstarError) in
      try folder.release(store)
    }
    // A restore places a hold in both places.
    if !options.namesInstard, try options.state.forReading.hold(on: store) != nil {
      _ = try openFolder().release(store)
    }
    return released
  }

  /// All holds, the oldest first.
  func holds() throws(InstarError) -> (holds: [Hold], unreadable: [InstarError]) {
    var all: (holds: [Hold], unreadable: [InstarError]) = ([], [])
    if let instard {
      let reply = try instard.call(.listHolds, returning: Manager.HoldsReply.self)
      all = (reply.holds, reply.unreadable)
    }
    guard !options.namesInstard else { return all }
    let own = try options.state.forReading.holds()
    return (
      (all.holds + own.holds).sorted { $0.since < $1.since }, all.unreadable + own.unreadable
    )
  }

  private mutating func change(
    _ store: String, byInstard: (DaemonConnection) throws(InstarError) -> Manager.HoldReply,
    inFolder: (StateFolder) throws(InstarError) -> Hold?
  ) throws(InstarError) -> Hold? {
    if let instard {
      do throws(InstarError) {
        if let hold = try byInstard(instard).hold { return hold }
      } catch  where !options.namesInstard && Self.isUnwatched(store, error) {
        // The state folder is the right place.
      }
      if options.namesInstard { return nil }
    }
    return try inFolder(try openFolder())
  }

  private mutating func openFolder() throws(InstarError) -> StateFolder {
    if let folder { return folder }
    let opened = try options.state.open()
    folder = opened
    return opened
  }

  /// Whether instard refused a store because it does not watch it, as far as this user may know.
  static func isUnwatched(_ store: String, _ error: InstarError) -> Bool {
    switch error.code {
    case .missingStore: return true
    case .notPermitted:
      // Of another user's store, instard does not say whether it watches the store.
      var status = stat()
      return lstat(store, &status) != 0 || status.st_uid == geteuid()
    default: return false
    }
  }
}

/// A hold that a command placed.
struct PlacedHold {
  let hold: Hold
  /// The path of the store, as the command spells it.
  let store: String
  /// Whether the hold is in the state folder of the command, and not in that of the instard that was asked.
  let isInFolder: Bool
}
