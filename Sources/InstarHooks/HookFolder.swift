import Foundation
import InstarLinux
public import InstarSchema

/// The folder of hooks: an event `wave-done` runs the programs in `wave-done.d`, in the order of their names.
///
/// As for run-parts(8), a name has letters, digits, `_` and `-` only: `mail.bak` and `mail.dpkg-old` never run. A
/// hook may be a symbolic link, also to one hook of several events.
public struct HookFolder: Sendable, Hashable {
  public let path: String

  /// The events on which hooks run, as in `INSTAR_EVENT`. The steps of a run and the other states of stores are not
  /// among them: there may be thousands a minute.
  public static let events = [
    "daemon-started", "daemon-stopping", "configuration-refused", "watch-failed",
    "plugin-accepted", "plugin-refused", "plugin-removed", "store-corrupt",
    "run-migrated", "run-refused", "run-failed", "run-busy", "runs-failed",
    "run-recovered", "recovery-failed", "backup-not-copied", "backup-damaged",
    "wave-opened", "wave-done", "rollout-finished", "rollout-halted", "rollout-resumed",
    "rollout-approved", "paused", "resumed", "problem",
  ]

  public init(_ path: String) {
    self.path = path
  }

  /// The folder with the hooks of one event.
  public func folder(of event: String) -> String { "\(path)/\(event).d" }

  /// Whether there may be hooks of an event. Reads one folder, and no file.
  public func hasHooks(of event: String) -> Bool {
    // A folder that cannot be read may have hooks: the runner reports why it cannot be read.
    guard access(folder(of: event), R_OK | X_OK) == 0 else { return errno == EACCES }
    return (try? FolderNames.all(in: folder(of: event)).contains(where: Self.isHook)) ?? true
  }

  /// Returns the paths of an event's hooks, in their order; none without a folder.
  ///
  /// - Throws: `hookFailed` where the folder cannot be read.
  public func hooks(of event: String) throws(InstarError) -> [String] {
    let folder = folder(of: event)
    guard access(folder, F_OK) == 0 || errno != ENOENT else { return [] }
    do throws(InstarError) {
      return try FolderNames.all(in: folder).filter(Self.isHook)
        .sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }.map { "\(folder)/\($0)" }
    } catch {
      throw InstarError(
        .hookFailed, "cannot run the hooks of \(event)", cause: "\(error.what): \(error.cause)",
        next: "run: chmod 755 \(CommandText.quoted(folder))")
    }
  }

  /// What an operator may have meant otherwise: names of no event, files that never run.
  public func notes() -> [String] {
    // The folder is optional.
    guard let names = try? FolderNames.all(in: path).sorted() else { return [] }
    var notes: [String] = []
    for name in names where !name.hasPrefix(".") {
      guard stat(following: "\(path)/\(name)")?.isFolder == true else {
        if name != "README" {
          notes.append(
            "'\(path)/\(name)' never runs: a hook is in the folder of its event, EVENT.d")
        }
        continue
      }
      let event = name.hasSuffix(".d") ? String(name.dropLast(2)) : name
      guard name.hasSuffix(".d"), Self.events.contains(event) else {
        let hint =
          Suggestion.nearest(to: event, among: Self.events).map { "; did you mean '\($0).d'?" }
          ?? "; instard(8) lists the events"
        notes.append("the hooks in '\(path)/\(name)' never run\(hint)")
        continue
      }
      notes += self.notes(event: event)
    }
    return notes
  }

  private func notes(event: String) -> [String] {
    let folder = folder(of: event)
    guard let names = try? FolderNames.all(in: folder).sorted() else {
      return ["the hooks in '\(folder)' cannot be read"]
    }
    return names.compactMap { name in
      guard !name.hasPrefix(".") else { return nil }
      let path = "\(folder)/\(name)"
      guard Self.isHook(name) else {
        return "'\(path)' never runs: the name of a hook has letters, digits, '_' and '-' only"
      }
      do throws(InstarError) {
        try HookTrust(owners: [0, geteuid()]).require(path)
        return HookRunner.faultOfFirstLine(of: path).map { Self.note(on: path, $0) }
      } catch {
        return Self.note(on: path, error)
      }
    }
  }

  private static func note(on hook: String, _ error: InstarError) -> String {
    "instard does not run '\(hook)': \(error.cause)\(error.next.map { "; \($0)" } ?? "")"
  }

  /// Whether run-parts(8) would run a file of this name.
  static func isHook(_ name: String) -> Bool {
    !name.isEmpty
      && name.utf8.allSatisfy {
        switch $0 {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"):
          true
        default: false
        }
      }
  }
}
