import CInstar
import Glibc
import InstarSchema

/// The user and the rights that a program is started with.
public enum ProcessIdentity: Sendable, Hashable {
  /// This process's user and rights.
  case inherited
  /// This process's user, without capabilities or a way to gain them.
  case unprivileged
  /// Another user, without capabilities or a way to gain them.
  case user(User)

  /// A user and the user's groups.
  public struct User: Sendable, Hashable {
    public var uid: UInt32
    /// The primary group.
    public var gid: UInt32
    /// All groups, the primary one among them.
    public var groups: [UInt32]
    /// The name; the number if the user has none.
    public var name: String
    /// The home folder; `/` if unknown.
    public var home: String

    /// Reads the user's entry in the system's databases. A user without one, as of a container or another host, has
    /// only the group `nogroup`.
    public init(uid: UInt32) {
      self.uid = uid
      gid = 65534
      groups = [gid]
      name = String(uid)
      home = "/"
      withPasswordEntry(of: uid) { entry in
        gid = entry.pw_gid
        name = String(cString: entry.pw_name)
        home = String(cString: entry.pw_dir)
        groups = Self.groups(of: entry.pw_name, and: gid)
      }
    }

    /// Reads the user's entry in the system's databases; `nil` if there is no user of this name.
    public init?(named name: String) {
      var buffer = [CChar](repeating: 0, count: 1 << 16)
      var entry = passwd()
      var found: UnsafeMutablePointer<passwd>?
      guard getpwnam_r(name, &entry, &buffer, buffer.count, &found) == 0, found != nil else {
        return nil
      }
      self.init(uid: entry.pw_uid)
    }

    /// Returns whether the user can create files in the folder of a file, by owners and modes: access control lists are
    /// not read.
    ///
    /// - Parameter file: Absolute; it need not exist.
    public func mayMakeFiles(beside file: String) -> Bool {
      guard var path = RealPath.of(file.parentFolder) else { return false }
      var wanted: mode_t = 0o3
      while may(wanted, path) {
        guard path != "/" else { return true }
        path = path.parentFolder
        wanted = 0o1
      }
      return false
    }

    /// - Parameter wanted: Bits as of the class of all others.
    private func may(_ wanted: mode_t, _ path: String) -> Bool {
      guard let status = stat(following: path) else { return false }
      // The first class that he is in counts (path_resolution(7)).
      let granted =
        if status.st_uid == uid {
          status.st_mode >> 6
        } else if groups.contains(status.st_gid) {
          status.st_mode >> 3
        } else {
          status.st_mode
        }
      return granted & wanted == wanted
    }

    private static func groups(of name: UnsafePointer<CChar>, and gid: UInt32) -> [UInt32] {
      var count: Int32 = 64
      while true {
        var groups = [UInt32](repeating: 0, count: Int(count))
        let capacity = count
        if getgrouplist(name, gid, &groups, &count) >= 0 {
          return Array(groups.prefix(Int(count)))
        }
        // It did not fit, and the count now says how many there are.
        guard count > capacity, count <= 65536 else { return [gid] }
      }
    }
  }

  /// Whether this process may start programs as other users.
  public static var mayBeAnyUser: Bool { instar_may_change_user() != 0 }

  /// The user with whose rights this process acts.
  public static var ownUser: UInt32 { geteuid() }

  /// The person who runs this process, as messages show one: the user who called sudo, if any.
  public static var nameOfCaller: String {
    let user = label(of: getuid())
    guard getuid() == 0, let name = getenv("SUDO_USER").map({ String(cString: $0) }), !name.isEmpty
    else { return user }
    return "\(name) as \(user)"
  }

  /// A user as messages show one: "alice (1001)".
  public static func label(of uid: UInt32) -> String {
    var label = String(uid)
    withPasswordEntry(of: uid) { label = "\(String(cString: $0.pw_name)) (\(uid))" }
    return label
  }

  /// A group as messages show it: "staff (50)".
  public static func label(ofGroup gid: UInt32) -> String {
    var buffer = [CChar](repeating: 0, count: 1 << 16)
    var entry = group()
    var found: UnsafeMutablePointer<group>?
    guard getgrgid_r(gid, &entry, &buffer, buffer.count, &found) == 0, found != nil else {
      return String(gid)
    }
    return "\(String(cString: entry.gr_name)) (\(gid))"
  }

  /// The part of this process's environment that a program of another user gets: without what a service manager passed
  /// to this process (sockets, credentials, state folders).
  func environment(of own: [String: String]) -> [String: String] {
    guard case .user(let user) = self else { return own }
    let kept = [
      "PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "TZ", "LD_LIBRARY_PATH",
      "INSTAR_BUILD_DIR", "LIBDISPATCH_LOG", "SWIFT_BACKTRACE",
    ]
    var environment = own.filter { kept.contains($0.key) }
    environment["HOME"] = user.home
    environment["USER"] = user.name
    environment["LOGNAME"] = user.name
    return environment
  }

  /// Calls `body` with the identity for `instar_spawn`; `nil` for `.inherited`.
  func withIdentity<Value>(_ body: (UnsafePointer<instar_identity>?) -> Value) -> Value {
    switch self {
    case .inherited:
      return body(nil)
    case .unprivileged:
      var identity = instar_identity()
      return body(&identity)
    case .user(let user):
      return user.groups.withUnsafeBufferPointer { groups in
        var identity = instar_identity(
          changes_user: 1, uid: user.uid, gid: user.gid, groups: groups.baseAddress,
          group_count: groups.count)
        return body(&identity)
      }
    }
  }
}

/// Calls `body` with the entry of a user, if there is one.
private func withPasswordEntry(of uid: UInt32, _ body: (passwd) -> Void) {
  var buffer = [CChar](repeating: 0, count: 1 << 16)
  var entry = passwd()
  var found: UnsafeMutablePointer<passwd>?
  guard getpwuid_r(uid, &entry, &buffer, buffer.count, &found) == 0, found != nil else { return }
  body(entry)
}
