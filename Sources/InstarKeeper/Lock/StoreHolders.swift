internal import Foundation
internal import InstarSchema
internal import InstarWire

/// Finds the processes that have a store open. Only root can see those of other users.
///
/// One scan of `/proc` serves a batch of stores for a second. No other file is opened.
struct StoreHolders {
  private var holders: [FileIdentity: [ProbeReport.Holder]] = [:]
  private var scannedAt: ContinuousClock.Instant?
  private static let validity = Duration.seconds(1)

  /// Returns the processes that have a file open, in the order of their ids, without this one. Empty where the file
  /// does not exist.
  mutating func ofFile(_ path: String) -> [ProbeReport.Holder] {
    var status = stat()
    guard lstat(path, &status) == 0 else { return [] }
    let now = ContinuousClock.now
    if scannedAt.map({ now - $0 > Self.validity }) ?? true {
      holders = Self.scanProcesses()
      scannedAt = now
    }
    return holders[FileIdentity(status)] ?? []
  }

  private static func scanProcesses() -> [FileIdentity: [ProbeReport.Holder]] {
    let own = getpid()
    var holders: [FileIdentity: [ProbeReport.Holder]] = [:]
    // Processes end during the scan, and those of other users cannot be read.
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
      let group = FileManager.default.contents(atPath: "/proc/\(pid)/cgroup") ?? Data()
      let holder = ProbeReport.Holder(
        pid: pid, command: String(decoding: command, as: UTF8.self).filter { !$0.isNewline },
        unit: unit(inControlGroups: String(decoding: group, as: UTF8.self)))
      for file in files { holders[file, default: []].append(holder) }
    }
    return holders
  }

  /// Returns the systemd unit of a process from its `/proc/PID/cgroup`, whose lines are `ID:CONTROLLERS:PATH`; `nil`
  /// where it belongs to none.
  ///
  /// A path such as `/user.slice/user@1000.service/app.slice/notes.service` names the innermost unit last. A unit may
  /// have groups of its own below it.
  static func unit(inControlGroups text: String) -> String? {
    for line in text.split(separator: "\n") {
      let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
      guard parts.count == 3, parts[1].isEmpty || parts[1] == "name=systemd" else { continue }
      let unit = parts[2].split(separator: "/").last {
        $0.hasSuffix(".service") || $0.hasSuffix(".scope")
      }
      if let unit { return String(unit) }
    }
    return nil
  }
}

extension InstarError {
  /// Adds the processes that have the store open to the cause.
  ///
  /// - Returns: The processes, in the order of their ids.
  @discardableResult
  mutating func nameHolders(of store: String) -> [ProbeReport.Holder] {
    var scan = StoreHolders()
    let holders = scan.ofFile(store)
    let text = holders.map(\.sentence).joined(separator: ", ")
    if !text.isEmpty { cause += "; it is open in \(text)" }
    return holders
  }
}
