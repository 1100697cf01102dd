import CInstar
import Glibc
public import InstarSchema

/// How much of the processors and of the disks a process gets while others want them too.
public struct ProcessPriority: Sendable, Hashable {
  /// Turns at the disk, as of ioprio_set(2). A scheduler without priorities, such as `none`, ignores them.
  public enum Disk: Sendable, Hashable {
    /// 0 (first) to 7 (last) among programs that have a level.
    case level(Int)
    /// Only while no other program uses the disk.
    case idle

    /// Reads "idle", or a level from 0 to 7.
    public init?(_ text: String) {
      if text == "idle" {
        self = .idle
      } else if let level = Int(text), (0...7).contains(level) {
        self = .level(level)
      } else {
        return nil
      }
    }

    /// The text that `init` reads.
    public var text: String {
      switch self {
      case .level(let level): "\(level)"
      case .idle: "idle"
      }
    }
  }

  /// From 0 (as other programs) to 19 (what they leave over), as of setpriority(2).
  public var nice = 0
  /// `nil` for what follows from `nice`.
  public var disk: Disk?

  /// The priority of other programs.
  public init() {}

  /// The arguments with which a program is told its priority.
  public var arguments: [String] {
    (nice > 0 ? ["--nice", "\(nice)"] : []) + (disk.map { ["--disk-priority", $0.text] } ?? [])
  }

  /// Sets the priority of the calling thread, and of the threads and processes that it starts from now on. A process
  /// that has a lower one already keeps that: only root may raise it.
  ///
  /// - Throws: `internalError` where the kernel refuses it.
  public func apply() throws(InstarError) {
    let what = "cannot lower the priority of this process"
    let process = __priority_which_t(PRIO_PROCESS.rawValue)
    if nice > getpriority(process, 0), setpriority(process, 0, Int32(nice)) != 0 {
      throw .systemFailure(what, errno)
    }
    guard let disk else { return }
    let result =
      switch disk {
      case .level(let level): instar_set_disk_priority(false, Int32(level))
      case .idle: instar_set_disk_priority(true, 0)
      }
    if result != 0 { throw .systemFailure(what, errno) }
  }
}
