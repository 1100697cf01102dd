import InstarLinux
import InstarSchema
import InstarSupervisor
import InstarWire

/// What the daemon's loop takes in, one input after the other.
enum DaemonMessage: Sendable {
  case recoveryEnded(InstarError?)
  case folderEvent(FolderWatch.Event)
  case scanned(WatchedFolders.Scan)
  case described([PluginDescription])
  case probed(ProbeReport, before: FileVersion?, after: FileVersion?)
  case probesEnded(InstarError?)
  case runEnded(RunReport, before: FileVersion?, after: FileVersion?)
  case tick
  case reload
  case shutdown

  /// Where work that goes on outside of the loop puts its results.
  typealias Mailbox = AsyncStream<DaemonMessage>.Continuation
}
