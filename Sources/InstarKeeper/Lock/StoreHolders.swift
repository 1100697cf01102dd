internal import Foundation
internal import InstarSchema
internal import InstarWire

/// Which processes have a store open. Best effort: those of other users can only be seen by root.
///
/// All processes are looked through at once, and what was found holds for a moment: for a batch of
/// stores that is once a second, not once a store. No file is opened but those of `/proc`.
struct StoreHolders {
  private var holders: [FileIdentity: [ProbeReport.Holder]] = [:]
  private var lookedAt: ContinuousClock.Instant?
  private static let validity = Duration.seconds(1)

  /// The processes that have the file of that name open, by their ids; not this one. Empty where
  /// there is no such file.
  mutating func ofFile(_ path: String) -> [ProbeReport.Holder] {
    var status = stat()
    guard lstat(path, &status) == 0 else { return [] }
    let now = ContinuousClock.now
    if lookedAt.map({ now - $0 > Self.validity }) ?? true {
      holders = Self.lookThroughProcesses()
      lookedAt = now
    }
    return holders[FileIdentity(status)] ?? []
  }

  private static func lookThroughProcesses() -> [FileIdentity: [ProbeReport.Holder]] {
    let own = getpid()
    var holders: [FileIdentity: [ProbeReport.Holder]] = [:]
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
    for pid in names.compactMap({ Int32($0) }).sorted() where pid != own {
      let folder = "/proc/\(pid)/fd"
      let descriptors = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
      var files = Set<FileIdentity>()
      for descriptor in descriptors {
        var status = stat()
        guard stat(folder + "/" + descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG
        else { continue }
        files.insert(FileIdentity(status))
      }
      guard !files.isEmpty else { continue }
      let command = FileManager.default.contents(atPath: "/proc/\(pid)/comm") ?? Data()
      let holder = ProbeReport.Holder(
        pid: pid, command: String(decoding: command, as: UTF8.self).filter { !$0.isNewline })
      for file in files { holders[file, default: []].append(holder) }
    }
    return holders
  }
}
