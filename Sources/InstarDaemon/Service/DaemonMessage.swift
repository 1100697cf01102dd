import InstarLinux
import InstarSchema
import InstarSupervisor

/// What the daemon's loop takes in, one input after the other.
enum DaemonMessage: Sendable {
  case folderEvent(FolderWatch.Event)
  case scanned(WatchedFolders.Scan)
  case described([PluginDescription])
  case store(StoreQueue.Event)
  case tick
  case reload
  case shutdown

  /// Where work that goes on outside of the loop puts its results.
  typealias Mailbox = AsyncStream<DaemonMessage>.Continuation
}
