internal import CInstar
internal import Foundation
internal import InstarLinux
internal import InstarSchema
internal import InstarStore
internal import InstarWire

extension Exchange {
  /// Whether an exchange is to be tried for a store whose clone has these bytes. A store in an app's own process is
  /// never exchanged: the app has it open.
  static func isWanted(_ policy: CutoverPolicy, bytes: Int64, _ openPolicy: OpenPolicy) -> Bool {
    guard openPolicy != .shared else { return false }
    switch policy {
    case .automatic: return bytes >= smallestStoreBytes
    case .exchange: return true
    case .writeBack: return false
    }
  }

  /// Why a store cannot be exchanged, as far as it can be known before anything is tried; `nil` where it may be tried.
  static func obstacle(_ lock: StoreLock, _ files: RunFiles) -> String? {
    let paths = files.paths
    if instar_may_exchange(files.cloneFolder) == 0 {
      return "Instar does not exchange files on this type of file system"
    }
    // Only within a file system. Where one of them cannot be read, the exchange itself finds out.
    var (store, clone) = (stat(), stat())
    if stat(paths.store, &store) == 0, stat(files.cloneFolder, &clone) == 0,
      store.st_dev != clone.st_dev
    {
      return "'\(paths.instarFolder)' is on another file system"
    }
    // A mount has the device of the file system that it shows, and no file can be renamed into it or out of it.
    let places = [paths.store, paths.instarFolder, files.path, files.cloneFolder]
    if let mount = MountWatch.mounts().first(where: { places.contains($0.path) }) {
      return "'\(mount.path)' is a mount of its own"
    }
    // An app may keep a journal with a cleared header.
    if !lock.usesLog, access(SideFile.journal.path(of: paths.store), F_OK) == 0 {
      return "an app keeps a rollback journal beside the store"
    }
    if lock.hasReplicator { return "a replicator follows the store's log" }
    if isMounted(paths) { return "the file is mounted elsewhere" }
    return nil
  }

  /// Whether the file itself, not only a folder above it, is a mount point or is mounted somewhere: a mount goes on to
  /// show the file that left. Only the mounts that this process sees are known.
  private static func isMounted(_ paths: StorePaths) -> Bool {
    guard let mounts = FileManager.default.contents(atPath: "/proc/self/mountinfo") else {
      return true
    }
    let escapes = [("\\", "\\134"), (" ", "\\040"), ("\t", "\\011"), ("\n", "\\012")]
    let name = escapes.reduce(paths.name) { $0.replacingOccurrences(of: $1.0, with: $1.1) }
    return String(decoding: mounts, as: UTF8.self).split(separator: "\n").contains { line in
      // Number, parent, device, root, mount point.
      line.split(separator: " ").dropFirst(3).prefix(2).contains { $0.hasSuffix("/" + name) }
    }
  }
}
