import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire

/// What the daemon's loop takes in, one input after the other.
enum DaemonMessage: Sendable {
  case folderEvent(FolderWatch.Event, FolderWatch)
  case scanned(WatchedFolders.Scan)
  case described([PluginDescription])
  case windows(WatchWindows.Check)
  case store(StoreQueue.Event)
  /// The file system of a store does not answer.
  case silent(String)
  /// How far a long stage is, or its end.
  case progress(RunEvent)
  case control(ControlRequest)
  /// A client reads the metrics.
  case metricsWanted(@Sendable (String) -> Void)
  /// Something was mounted or unmounted.
  case mountsChanged
  case tick
  case reload
  case shutdown

  /// Where work that goes on outside of the loop puts its results.
  typealias Mailbox = AsyncStream<DaemonMessage>.Continuation
}
