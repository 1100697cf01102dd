internal import Foundation
internal import InstarLinux
internal import InstarSchema
internal import InstarWire

/// Finds the processes that have a store open.
///
/// Which files a process has open is seen by its own user, and for a process with capabilities only by one that has as
/// many: a keeper has none. Who has a lock is seen by all, and an app has one while it reads or writes a store, and on
/// the index of the log (`-shm`) as long as it has a store with a log open.
///
/// One scan of `/proc` serves a batch of stores for a second. No other file is opened: closing a store would end this
/// process's own locks on it.
struct StoreHolders {
  private var holders: [FileIdentity: [ProbeReport.Holder]] = [:]
  private var scannedAt: ContinuousClock.Instant?
  private static let validity = Duration.seconds(1)

  /// Returns the processes that have a file open, in the order of their ids, without this one. Empty where the file
  /// does not exist.
  mutating func ofFile(_ path: String) -> [ProbeReport.Holder] {
    guard let store = Self.identity(of: path) else { return [] }
    let ofStore = of(store)
    let ofIndex = Self.identity(of: SideFile.index.path(of: path)).map { of($0) } ?? []
    return (ofStore + ofIndex.filter { !ofStore.contains($0) }).sorted { $0.pid < $1.pid }
  }

  /// Returns the processes that have a file open, whatever path it has, in the order of their ids, without this one.
  mutating func of(_ file: FileIdentity) -> [ProbeReport.Holder] {
    let now = ContinuousClock.now
    if scannedAt.map({ now - $0 > Self.validity }) ?? true {
      holders = Self.scanProcesses()
      scannedAt = now
    }
    return holders[file] ?? []
  }

  private static func identity(of path: String) -> FileIdentity? {
    stat(of: path).map(FileIdentity.init)
  }

  private static func scanProcesses() -> [FileIdentity: [ProbeReport.Holder]] {
    let own = getpid()
    let locks = Dictionary(grouping: FileLock.all(), by: \.pid)
    var holders: [FileIdentity: [ProbeReport.Holder]] = [:]
    // Processes end during the scan, and those of other users cannot be read.
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
    for pid in names.compactMap({ Int32($0) }).sorted() where pid != own {
      let folder = "/proc/\(pid)/fd"
      let descriptors = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
      var files = Set((locks[pid] ?? []).map(\.file))
      for descriptor in descriptors {
        guard let status = stat(following: folder + "/" + descriptor), status.isRegular
        else { continue }
        files.insert(FileIdentity(status))
      }
      guard !files.isEmpty else { continue }
      let command = FileManager.default.contents(atPath: "/proc/\(pid)/comm") ?? Data()
      let group = FileManager.default.contents(atPath: "/proc/\(pid)/cgroup") ?? Data()
      if command == Data("\(StaleFile.lockProcess)\n".utf8) { continue }
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
  /// Adds the processes that have the store open to the cause, and where one has locked the store, to the advice.
  ///
  /// - Parameter file: What the path names, if that is not the store.
  /// - Returns: The processes, in the order of their ids.
  @discardableResult
  mutating func nameHolders(
    of store: String, as file: String = "the store"
  ) -> [ProbeReport.Holder] {
    var scan = StoreHolders()
    let holders = scan.ofFile(store)
    if let text = ProbeReport.inWords(holders, of: file) { cause += "; \(text)" }
    if next == Self.adviceOnLock { next = ProbeReport.adviceOnLock(of: store, holders) }
    return holders
  }

  /// Returns the error of a busy store with the processes that have the store open; another error as it is.
  func namingHolders(of store: String) -> InstarError {
    guard code == .busyStore else { return self }
    var copy = self
    copy.nameHolders(of: store)
    return copy
  }
}
